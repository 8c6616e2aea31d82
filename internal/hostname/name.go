// Package hostname is the contract between a sandbox's name and the hosts that lead to it, in both directions: name to
// URLs and Traefik labels, Host header to name and port.
//
// It knows nothing of which sandboxes exist, of who may use them, or of HTTP beyond the form of a host.
//
// Invariant: Parse is the inverse of the URLs, and nothing else parses. A host that we did not make is NotFound, so
// that neither a rebound DNS name nor a neighbour's server on the same machine is ever served as ours.
package hostname

import (
	"strings"

	"sandboxd/internal/fault"
)

// MaxName is the longest name: with a port and a prefix before it, it still fits the 63 characters of a DNS label.
const MaxName = 40

// reserved names would be mistaken for parts of sandboxd, or are words of its own paths.
var reserved = map[string]bool{
	"admin": true, "api": true, "app": true, "auth": true, "code": true, "dashboard": true, "localhost": true,
	"new": true, "sandboxd": true, "static": true, "traefik": true, "www": true,
}

// codePrefix begins the hosts of a sandbox's IDE.
const codePrefix = "code-"

// CheckName says whether name can be a sandbox's name: a DNS label that starts with a letter. The error is Invalid and
// about the field "name".
func CheckName(name string) error {
	if reserved[name] || strings.HasPrefix(name, codePrefix) {
		return fault.Field("name", "The name %q is reserved. Choose another one.", name)
	}
	return checkForm(name)
}

// checkForm is CheckName for a name of which no one is reserved, such as a service's.
func checkForm(name string) error {
	const field = "name"
	switch {
	case name == "":
		return fault.Field(field, "A name is needed.")
	case len(name) > MaxName:
		return fault.Field(field, "The name is too long: %d characters at most.", MaxName)
	case !isLower(name[0]):
		return fault.Field(field, "A name starts with a lowercase letter, a to z. Digits and hyphens may follow.")
	case strings.IndexFunc(name, notNameRune) >= 0:
		return fault.Field(field, "A name has only lowercase letters a to z, digits and hyphens.")
	case strings.HasSuffix(name, "-"):
		return fault.Field(field, "A name ends with a letter or a digit.")
	case strings.Contains(name, "--"):
		return fault.Field(field, "A name has no two hyphens in a row.")
	}
	return nil
}

func notNameRune(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-')
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
