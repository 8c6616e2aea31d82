// Package shoutrrr sends messages about alerts to chat and push services, by the addresses of the library of that name, such as
// "slack://…" or "ntfy://…". The library cannot be interrupted and reads answers without bound, so it sends each message in a child
// process: this program again, with an argument that makes it run Main.
//
// It keeps no queue and tries once: what failed is tried again by package alert. It does not keep the library off private addresses,
// so only admins may have such channels; that is for package alert to see to.
//
// Invariant: this process connects to no service. A child is bounded in time and memory, and Send returns only once it has ended. An
// address is a secret: neither it nor anything that the library says, which may contain it, is in an error, a log, an argument or a
// variable.
package shoutrrr

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"sandboxd/internal/alert"
	"sandboxd/internal/alert/plain"
	"sandboxd/internal/fault"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/text"
)

const (
	sendLimit    = 20 * time.Second // most services give up by themselves after 10 s
	waitLimit    = 10 * time.Second // with sendLimit, as long as package alert waits
	addressLimit = 2048             // bytes
	memberLimit  = 10               // alerts that a message names; the smallest service takes 2,000 characters
)

// Bounds on the messages under way.
const (
	mostUnderWay    = 4 // each may take memoryLimit
	mostToOneTarget = 1
)

// titled are services that show a title. To the others, it goes as the first line of the text.
var titled = []string{"bark", "discord", "gotify", "join", "lark", "ntfy", "pushbullet", "pushover", "slack", "smtp", "teams", "telegram"}

// unusable are services of the library that carry a message nowhere.
var unusable = []string{"logger"}

// Sender sends by the library. It implements alert.Sender.
type Sender struct {
	Program []string      // with its arguments; runs Main. Check does without.
	Limit   time.Duration // for one message, without the wait for those before it; 20 s when 0

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

// Send implements alert.Sender. It takes 30 s at most. Kinds: Invalid (the service refuses it for good), Unavailable, Timeout.
func (s *Sender) Send(ctx context.Context, c alert.Channel, m alert.Message) error {
	service, _, err := parse(c.Address)
	if err != nil {
		return err
	}
	release, err := s.enter(ctx, c.Address, service)
	if err != nil {
		return err
	}
	defer release()
	return s.run(ctx, service, newRequest(service, c.Address, m))
}

// enter takes a place among the messages under way. It waits for those before.
func (s *Sender) enter(ctx context.Context, address, service string) (release func(), err error) {
	const waiting = 8
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	one, err := s.underWay.Acquire(ctx, address, mostToOneTarget, waiting)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "An earlier message to %s is still under way. This one is tried later.", service)
	}
	all, err := s.underWay.Acquire(ctx, "", mostUnderWay, -1)
	if err != nil {
		one()
		return nil, fault.New(fault.Unavailable, "Too many messages to chat services are under way. This one is tried later.")
	}
	return func() { all(); one() }, nil // in this order: those who wait for one want all next
}

// harmless takes from text what services act on: what a sandbox writes must neither call everyone in a channel nor become a link.
var harmless = strings.NewReplacer("@", "＠", "<", "‹", ">", "›", "](", "] (", "://", "：//")

// newRequest words a message for a service.
func newRequest(service, address string, m alert.Message) request {
	link := m.Link // the only one that leads anywhere
	m.Link = ""
	r := request{Address: address, Title: harmless.Replace(plain.Subject(m)), Text: harmless.Replace(plain.Text(m, memberLimit))}
	if link != "" {
		r.Text += link + "\n"
	}
	if !slices.Contains(titled, service) {
		r.Title, r.Text = "", r.Title+"\n"+r.Text
	}
	return r
}
