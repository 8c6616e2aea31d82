// Package mail sends messages about alerts as e-mail, by one SMTP server.
//
// It keeps no queue and tries once: what failed is tried again by package alert. It is no mail server, and follows no MX records.
//
// Invariant: the password and, unless that was chosen, the mail itself leave this host over TLS only. A mail that the server took is
// never reported as failed.
package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	netmail "net/mail"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Security is how the connection to the server is protected.
type Security string

// The kinds of protection.
const (
	STARTTLS Security = "starttls" // plain at first, then TLS or nothing
	Implicit Security = "implicit" // TLS from the first byte
	None     Security = "none"     // no TLS
)

// Check refuses what is none of the kinds; "" is STARTTLS. Kind: Invalid, with the field "smtp-tls".
func (s Security) Check() error {
	if !slices.Contains([]Security{"", STARTTLS, Implicit, None}, s) {
		return fault.Field("smtp-tls", "--smtp-tls is %q; it must be starttls, implicit or none.", s)
	}
	return nil
}

// Bounds of one mail.
const (
	sendLimit   = 30 * time.Second // with all that is said about it
	quitLimit   = 2 * time.Second
	answerLimit = 256 << 10 // bytes of all that the server says, with what TLS adds
)

// addressLimit bounds an address, in bytes. See RFC 5321.
const addressLimit = 254

// Config is what a Sender needs.
type Config struct {
	Server   string         // "host:port"
	Security Security       // STARTTLS when ""
	User     string         // "" to not sign in
	Password string         // of User
	From     string         // sender: "alerts@example.com", or with a name as "sandboxd <alerts@example.com>"
	RootCAs  *x509.CertPool // whose certificates are trusted; nil for those of this host
}

// Sender sends mail by one server. It implements alert.Sender.
type Sender struct {
	config Config
	host   string
	from   *netmail.Address
	local  string // this host's name
}

// New makes a Sender. It connects to nothing. Kind: Invalid, with the field of the flag that is wrong.
func New(c Config) (*Sender, error) {
	c.Security = cmp.Or(c.Security, STARTTLS)
	host, port, err := net.SplitHostPort(c.Server)
	if _, portErr := net.LookupPort("tcp", port); err != nil || portErr != nil || host == "" || port == "0" {
		return nil, fault.Field("smtp", "--smtp is %q; it must be a mail server with its port, such as mail.example.com:587.", c.Server)
	}
	if err := c.Security.Check(); err != nil {
		return nil, err
	}
	from, err := netmail.ParseAddress(c.From)
	if err != nil || text.Unprintable(c.From) || len(from.Address) > addressLimit {
		return nil, fault.Field("smtp-from", "--smtp-from is %q; with --smtp it must be the address that mail comes from, such as alerts@example.com.", c.From)
	}
	switch {
	case c.User == "" && c.Password != "":
		return nil, fault.Field("smtp-user", "--smtp-password-file needs --smtp-user, whose password it is.")
	case c.User != "" && c.Password == "":
		return nil, fault.Field("smtp-password-file", "--smtp-user needs --smtp-password-file, a file with the password.")
	case c.User != "" && c.Security == None && !loopback(host):
		return nil, fault.Field("smtp-tls", "--smtp-tls=none would send the password of --smtp-user unprotected to %s. Use starttls or implicit.", host)
	}
	local, err := os.Hostname()
	if err != nil || local == "" || text.Unprintable(local) || strings.Contains(local, " ") {
		local = "localhost"
	}
	return &Sender{config: c, host: host, from: from, local: local}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Check implements alert.Sender. The address is one e-mail address without a name.
func (s *Sender) Check(c alert.Channel) error {
	a, err := netmail.ParseAddress(c.Address)
	if err != nil || a.Address != c.Address || text.Unprintable(c.Address) || len(c.Address) > addressLimit {
		return fault.Field("address", "This is not an e-mail address. Enter one address alone, such as ada@example.com.")
	}
	return nil
}

// Send implements alert.Sender. It takes 30 s at most. Kinds: Invalid (the server refuses the address or the mail for good),
// Unavailable, Timeout.
func (s *Sender) Send(ctx context.Context, c alert.Channel, m alert.Message) error {
	if err := s.Check(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	letter, err := s.compose(c, m)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.config.Server)
	if err != nil {
		return s.problem(ctx, connecting, err)
	}
	defer conn.Close()
	// The library has no contexts: an end of ctx ends all reads and writes.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // fails only once conn is closed, which ends them too
	client, at, err := s.open(ctx, &bounded{conn, answerLimit})
	if err != nil {
		return s.problem(ctx, at, err)
	}
	if at, err := deliver(client, s.from.Address, c.Address, letter); err != nil {
		return s.problem(ctx, at, err)
	}
	_ = conn.SetDeadline(time.Now().Add(quitLimit)) // fails only once conn is closed
	_ = client.Quit()                               // the mail was taken; what comes after does not matter
	return nil
}

// bounded is a connection from which only so much is read: the library would keep a line without an end in memory.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// open greets the server at conn, begins TLS and signs in. When that fails, it says at which step.
func (s *Sender) open(ctx context.Context, conn net.Conn) (*smtp.Client, step, error) {
	protect := &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12, RootCAs: s.config.RootCAs}
	if s.config.Security == Implicit {
		over := tls.Client(conn, protect)
		if err := over.HandshakeContext(ctx); err != nil {
			return nil, encrypting, err
		}
		conn = over
	}
	client, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, greeting, err
	}
	if err := client.Hello(s.local); err != nil {
		return nil, greeting, err
	}
	if s.config.Security == STARTTLS {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return nil, encrypting, errNoSTARTTLS
		}
		if err := client.StartTLS(protect); err != nil {
			return nil, encrypting, err
		}
	}
	if s.config.User != "" {
		return client, signingIn, s.signIn(client)
	}
	return client, signingIn, nil
}

// signIn signs in by the first way of ours that the server offers.
func (s *Sender) signIn(client *smtp.Client) error {
	const unprotected = true // New has seen to it that the connection is protected, or does not leave this host
	_, offered := client.Extension("AUTH")
	ways := strings.Fields(strings.ToUpper(offered))
	switch {
	case slices.Contains(ways, "PLAIN"):
		return client.Auth(smtp.PlainAuth("", s.config.User, s.config.Password, s.host, unprotected))
	case slices.Contains(ways, "LOGIN"):
		return client.Auth(smtp.LoginAuth(s.config.User, s.config.Password, s.host, unprotected))
	}
	return errNoWay
}

// deliver hands a letter over. When that fails, it says at which step.
func deliver(client *smtp.Client, from, to string, letter []byte) (step, error) {
	client.SkipSMTPUTF8(ascii(from) && ascii(to)) // with it, a server may have to bounce the mail when the next one does not know it
	if err := client.Mail("<" + from + ">"); err != nil {
		return naming, err
	}
	if err := client.Rcpt("<" + to + ">"); err != nil {
		return addressing, err
	}
	w, err := client.Data()
	if err != nil {
		return sending, err
	}
	if _, err := w.Write(letter); err != nil {
		return sending, err
	}
	return sending, w.Close()
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > '\x7f' })
}
