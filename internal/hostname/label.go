package hostname

import "strings"

// maxLabel is the longest part of a host name between two dots, by DNS.
const maxLabel = 63

// serviceMark stands between a service's name and its sandbox's. Neither of them has it.
const serviceMark = "--"

// punycode before two hyphens begins a label that browsers decode to other letters, so a service of that name has no host.
const punycode = "xn"

// parseLabel reads the label before the domain: <service>--<name>, <port>-<name>, code-<name> or <name>. No two of these
// can be mistaken for each other.
func parseLabel(label string) (Target, error) {
	t := Target{Kind: Terminal, Name: label}
	if service, name, found := strings.Cut(label, serviceMark); found {
		t = Target{Kind: Service, Name: name, Service: service}
	} else if label != "" && isDigit(label[0]) {
		number, name, _ := strings.Cut(label, "-")
		t = Target{Kind: Port, Name: name, Port: parsePort(number)}
	} else if name, found := strings.CutPrefix(label, codePrefix); found {
		t = Target{Kind: IDE, Name: name}
	}
	if CheckName(t.Name) != nil || t.Kind == Port && t.Port == 0 || t.Kind == Service && !t.isService() {
		return Target{}, unknownHost()
	}
	return t, nil
}

// isService reports whether t is a service's, and has a host.
func (t Target) isService() bool {
	return checkForm(t.Service) == nil && t.Service != punycode && CheckName(t.Name) == nil &&
		len(t.Service+serviceMark+t.Name) <= maxLabel
}
