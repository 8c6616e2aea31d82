package proxy

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// password is the user name and password of one sandbox's terminal, as hashes, so that each comparison takes the same time.
type password [2][sha256.Size]byte

func hashPassword(user, pass string) password {
	return password{sha256.Sum256([]byte(user)), sha256.Sum256([]byte(pass))}
}

// passwordOf gives the password of the sandbox's terminal, if it has one.
func passwordOf(sb sandbox.Sandbox) (password, bool) {
	user, pass, ok := sb.TerminalPassword()
	return hashPassword(user, pass), ok
}

func (p password) is(o password) bool {
	user := subtle.ConstantTimeCompare(p[0][:], o[0][:])
	return user&subtle.ConstantTimeCompare(p[1][:], o[1][:]) == 1
}

// byPassword identifies a caller by the sandbox's own user name and password, for its terminal and nothing else. Without them the
// error is unknown.
func (c *claim) byPassword(ctx context.Context, sb sandbox.Sandbox, unknown error) (caller, error) {
	user, pass, given := c.r.BasicAuth()
	if !given {
		return caller{}, unknown
	}
	want, ok := passwordOf(sb)
	if !ok {
		return caller{}, unknown
	}
	wait, giveBack := c.proxy.attempts.Take(c.network() + " " + sb.ID) // before it is checked, so that many at once cannot slip through
	if wait > 0 {
		return caller{}, fault.Later(fault.Limited, wait, "Too many wrong passwords. Try again in a minute.")
	}
	if !want.is(hashPassword(user, pass)) {
		return caller{}, fault.New(fault.Unauthenticated, "This user name and password do not open this terminal.")
	}
	giveBack()
	owner, err := c.proxy.cfg.Accounts.User(ctx, sb.Owner)
	if fault.Is(err, fault.NotFound) || err == nil && owner.Disabled {
		return caller{}, unknown // the password ends with its owner's account
	}
	return caller{Principal: auth.Principal{User: auth.User{ID: sb.Owner}, Sandbox: sb.Name, SandboxID: sb.ID}, byBasic: true}, err
}

// askPassword makes browsers ask for the sandbox's password, and links to the dashboard's sign-in as the other way.
func (s *signIn) askPassword(why string) {
	s.w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q, charset=\"UTF-8\"", s.target.Name))
	n := notice{Status: http.StatusUnauthorized, Code: fault.Unauthenticated.String(), Title: "Sign in needed", Text: why,
		Hint: "Give the terminal's user name and password, or sign in to sandboxd."}
	if isNavigation(s.r) {
		n.Links = []link{{"Sign in through the dashboard", s.handoverURL()}}
	}
	s.show(n)
}

// dropPassword removes a terminal's password from a request to it.
func dropPassword(h http.Header) {
	if scheme, _, _ := strings.Cut(h.Get("Authorization"), " "); strings.EqualFold(scheme, "Basic") {
		h.Del("Authorization")
	}
}

const (
	attemptsBurst = 10              // wrong passwords at once, from one address at one sandbox
	attemptsEvery = 6 * time.Second // and one more each
)
