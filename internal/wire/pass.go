package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	// GatewayPort is where the guest's gateway listens in the sandbox.
	GatewayPort = 7880
	// GatewayKeySize is the length of a gateway's key.
	GatewayKeySize = 32
	// PassHeader is the request header that carries a pass. Only Traefik and the gateway ever see it.
	PassHeader = "X-Sandboxd-Pass"
	// PassLife is how long a pass is issued for. A request that is let in may last longer.
	PassLife = 60 * time.Second
	// OutsiderLife is how long a request of an outsider may last that the gateway has let in. The gateway does not hear when
	// a port is made private or a share is revoked, so nothing that such a visitor has begun may go on for long: what is
	// cut can be asked for again, and then is answered as things are.
	OutsiderLife = 5 * time.Minute
)

const (
	// passVersion begins every pass and is part of what is signed.
	passVersion = "1"
	// outsiderVersion begins the passes of outsiders.
	outsiderVersion = "2"
	// maxPass bounds what is looked at; a pass has 56 characters.
	maxPass = 128
)

// ErrPass says that a pass does not open the gateway. It does not say why: whoever guesses learns nothing.
var ErrPass = errors.New("the pass is not valid")

// NewPass makes the pass that opens the gateway with that key for requests to host until then. The host's letter case,
// its port and one trailing dot do not matter. With a key of another length than GatewayKeySize it is "", which opens
// nothing.
func NewPass(key []byte, host string, until time.Time) string {
	return newPass(key, passVersion, host, until)
}

// NewOutsiderPass is NewPass for a visitor who may use this port alone, for as long as it is public or shared.
func NewOutsiderPass(key []byte, host string, until time.Time) string {
	return newPass(key, outsiderVersion, host, until)
}

// IsOutsiderPass reports whether a pass that CheckPass has found valid is one of NewOutsiderPass.
func IsOutsiderPass(pass string) bool { return strings.HasPrefix(pass, outsiderVersion+".") }

func newPass(key []byte, version, host string, until time.Time) string {
	if len(key) != GatewayKeySize {
		return ""
	}
	expiry := strconv.FormatInt(until.Unix(), 10)
	return version + "." + expiry + "." + base64.RawURLEncoding.EncodeToString(signPass(key, version, host, expiry))
}

// CheckPass says whether pass opens the gateway with that key for a request to host at now. A pass that is valid for
// longer than any that we issue is refused. Every error is ErrPass.
func CheckPass(key []byte, pass, host string, now time.Time) error {
	if len(key) != GatewayKeySize || len(pass) > maxPass {
		return ErrPass
	}
	version, rest, _ := strings.Cut(pass, ".")
	expiry, signed, _ := strings.Cut(rest, ".")
	if version != passVersion && version != outsiderVersion {
		return ErrPass
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(signed)
	if err != nil || !hmac.Equal(sum, signPass(key, version, host, expiry)) {
		return ErrPass
	}
	until, err := strconv.ParseInt(expiry, 10, 64)
	if err != nil || until <= now.Unix() || until > now.Add(2*PassLife).Unix() {
		return ErrPass
	}
	return nil
}

func signPass(key []byte, version, host, expiry string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(version + "|" + bareHost(host) + "|" + expiry))
	return h.Sum(nil)
}

// bareHost is a Host header without its port and trailing dot, in lower case. Only ASCII letters are lowered: others
// that would fold into ours are other hosts.
func bareHost(host string) string {
	end := strings.LastIndexByte(host, ':')
	if strings.LastIndexByte(host, ']') > end {
		end = -1 // an address without a port
	}
	if end >= 0 {
		host = host[:end]
	}
	b := []byte(strings.TrimSuffix(host, "."))
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + ('a' - 'A')
		}
	}
	return string(b)
}
