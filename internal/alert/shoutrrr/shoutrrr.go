// Package shoutrrr sends messages about alerts to chat and push services, by the addresses of the library of that name, such as
// "slack://…" or "ntfy://…".
//
// It keeps no queue and tries once: what failed is tried again by package alert. It does not keep the library off private addresses,
// so only admins may have such channels; that is for package alert to see to.
//
// Invariant: an address is a secret. Neither it nor anything that the library says, which may contain it, is in an error or a log.
package shoutrrr

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"

	"sandboxd/internal/alert"
	"sandboxd/internal/alert/plain"
	"sandboxd/internal/fault"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/text"
)

const (
	sendLimit    = 20 * time.Second // most services give up by themselves after 10 s
	addressLimit = 2048             // bytes
	memberLimit  = 10               // alerts that a message names; the smallest service takes 2,000 characters
)

// Bounds on the messages under way. The library has no contexts, so one that hangs goes on after its deadline and counts until it ends.
const (
	mostUnderWay    = 16
	mostToOneTarget = 1
)

// titled are services that show a title. To the others, it goes as the first line of the text.
var titled = []string{"bark", "discord", "gotify", "join", "lark", "ntfy", "pushbullet", "pushover", "slack", "smtp", "teams", "telegram"}

// unusable are services of the library that carry a message nowhere.
var unusable = []string{"logger"}

// Sender sends by the library. It implements alert.Sender. The zero value is ready.
type Sender struct {
	underWay semaphore.Keyed // by address; "" for all
}

// Check implements alert.Sender. It connects to nothing.
func (s *Sender) Check(c alert.Channel) error {
	service, u, err := parse(c.Address)
	if err != nil {
		return err
	}
	if service == "matrix" { // the library would sign in at once
		if _, token := u.User.Password(); !token || u.Hostname() == "" {
			return notOf(service)
		}
		return nil
	}
	_, err = open(c.Address, service)
	return err
}

// parse gives the service of an address.
func parse(address string) (service string, u *url.URL, err error) {
	u, err = url.Parse(address)
	if err != nil || len(address) > addressLimit || text.Unprintable(address) || !strings.Contains(address, "://") {
		return "", nil, fault.Field("address", "This is not an address of a chat service. It begins with the service's name, such as slack:// or ntfy://.")
	}
	service, _, _ = strings.Cut(u.Scheme, "+")
	if known := new(router.ServiceRouter).ListServices(); !slices.Contains(known, service) || slices.Contains(unusable, service) {
		known = slices.DeleteFunc(known, func(name string) bool { return slices.Contains(unusable, name) })
		slices.Sort(known)
		return "", nil, fault.Field("address", "The address does not begin with the name of a known service. These are known: %s.", strings.Join(known, ", "))
	}
	return service, u, nil
}

// notOf says that an address has not the form that its service asks for. What the library says about that has parts of it.
func notOf(service string) error {
	return fault.Field("address", "This is not a complete address of %s. The library's documentation tells its form.", service)
}

// open makes the library's service for an address. That of some services, such as Matrix, signs in.
func open(address, service string) (out types.Service, err error) {
	defer func() {
		if recover() != nil {
			err = notOf(service)
		}
	}()
	out, err = new(router.ServiceRouter).Locate(address)
	if err != nil {
		return nil, notOf(service)
	}
	return out, nil
}

// Send implements alert.Sender. It takes 20 s at most. Kinds: Invalid (the service refuses it for good), Unavailable, Timeout.
func (s *Sender) Send(ctx context.Context, c alert.Channel, m alert.Message) error {
	service, _, err := parse(c.Address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	release, err := s.enter(ctx, c.Address, service)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { // it ends when the library's call does, and then gives its place free
		defer release()
		ended <- send(c.Address, service, m)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return late(ctx, service)
	}
}

func late(ctx context.Context, service string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.New(fault.Unavailable, "It is not known whether %s took the message: sending was interrupted.", service)
	}
	return fault.New(fault.Timeout, "%s did not answer in time.", service)
}

// enter takes a place among the messages under way. It waits for the one before to the same address.
func (s *Sender) enter(ctx context.Context, address, service string) (release func(), err error) {
	const waiting = 8
	one, err := s.underWay.Acquire(ctx, address, mostToOneTarget, waiting)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "An earlier message to %s is still under way. This one is tried later.", service)
	}
	all, ok := s.underWay.Try("", mostUnderWay)
	if !ok {
		one()
		return nil, fault.New(fault.Unavailable, "Too many messages to chat services hang. This one is tried later.")
	}
	return func() { all(); one() }, nil // in this order: those who wait for one want all next
}

// harmless takes from text what services act on: what a sandbox writes must neither call everyone in a channel nor become a link.
var harmless = strings.NewReplacer("@", "＠", "<", "‹", ">", "›", "](", "] (", "://", "：//")

// send hands a message to the library.
func send(address, service string, m alert.Message) (err error) {
	defer func() {
		if recover() != nil {
			err = failed(service)
		}
	}()
	to, err := open(address, service)
	if err != nil && service == "matrix" {
		return failed(service) // Check has found the address good, so it is the sign-in that failed
	}
	if err != nil {
		return err
	}
	link := m.Link // the only one that leads anywhere
	m.Link = ""
	title, body, params := harmless.Replace(plain.Subject(m)), harmless.Replace(plain.Text(m, memberLimit)), types.Params{}
	if link != "" {
		body += link + "\n"
	}
	if slices.Contains(titled, service) {
		params.SetTitle(title)
	} else {
		body = title + "\n" + body
	}
	return problem(service, to.Send(body, &params))
}

func failed(service string) error {
	return fault.New(fault.Unavailable, "%s did not take the message. Check the address and what it allows.", service)
}

// problem words the library's error without what it says.
func problem(service string, err error) error {
	var status jsonclient.Error
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	var slow net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && status.StatusCode >= 400:
		return refusal(service, status.StatusCode)
	case errors.As(err, &certificate):
		return fault.New(fault.Unavailable, "The certificate of the server for %s is not trusted.", service)
	case errors.As(err, &name) && name.IsNotFound:
		return fault.New(fault.Unavailable, "The server for %s cannot be found: there is no such name.", service)
	case errors.As(err, &slow) && slow.Timeout():
		return fault.New(fault.Timeout, "%s did not answer in time.", service)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault.New(fault.Unavailable, "The server for %s refuses connections.", service)
	}
	return failed(service)
}

// refusal says what a status means for the message.
func refusal(service string, status int) error {
	kind := fault.Unavailable
	if status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests {
		kind = fault.Invalid
	}
	return fault.New(kind, "%s answers %s. Check the address and what it allows.", service, strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status))))
}
