package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"slices"
	"syscall"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// step is how far a mail came.
type step int

// The steps, in their order.
const (
	connecting step = iota
	greeting
	encrypting
	signingIn
	naming // the sender
	addressing
	sending
)

var (
	errNoSTARTTLS = errors.New("no STARTTLS is offered")
	errTooLong    = errors.New("the server says too much")
	errNoWay      = errors.New("neither PLAIN nor LOGIN is offered")
)

// replyLimit bounds what is shown of a server's answer, in bytes.
const replyLimit = 200

// wantsFirst are a server's answers when it wants TLS or a user first, at whatever step. See RFC 3207 and RFC 4954.
var wantsFirst = []int{523, 530, 538}

// problem words what went wrong at a step. What an admin can mend is Unavailable, so that mail waits for that.
func (s *Sender) problem(ctx context.Context, at step, err error) error {
	server := s.config.Server
	var reply *textproto.Error
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var name *net.DNSError
	var slow net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fault.Wrap(err, fault.Unavailable, "The mail was not sent: sending was interrupted.")
	case errors.As(err, &reply):
		return s.refusal(at, reply)
	case errors.Is(err, errNoSTARTTLS):
		return fault.Wrap(err, fault.Unavailable, "The mail server at %s does not offer STARTTLS. An administrator can set --smtp-tls=implicit for its TLS port, or --smtp-tls=none.", server)
	case errors.Is(err, errTooLong):
		return fault.Wrap(err, fault.Unavailable, "The mail server at %s answers without an end.", server)
	case errors.Is(err, errNoWay):
		return fault.Wrap(err, fault.Unavailable, "The mail server at %s offers no sign-in with a password (PLAIN or LOGIN). An administrator can leave out --smtp-user, or use another port.", server)
	case errors.As(err, &certificate):
		return fault.Wrap(err, fault.Unavailable, "The certificate of the mail server at %s is not trusted: %v.", server, certificate.Err)
	case errors.As(err, &record):
		return fault.Wrap(err, fault.Unavailable, "The mail server at %s does not begin with TLS. An administrator can set --smtp-tls=starttls.", server)
	case errors.As(err, &name) && name.IsNotFound:
		return fault.Wrap(err, fault.Unavailable, "The mail server %s cannot be found: there is no such name.", s.host)
	case ctx.Err() != nil, errors.As(err, &slow) && slow.Timeout():
		return fault.Wrap(err, fault.Timeout, "The mail server at %s did not answer in time.%s", server, s.hint(at))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault.Wrap(err, fault.Unavailable, "The mail server at %s refuses connections.", server)
	}
	return fault.Wrap(err, fault.Unavailable, "The connection to the mail server at %s failed.%s", server, s.hint(at))
}

// hint is a likely cause of a server's silence: one that expects TLS at once waits for that.
func (s *Sender) hint(at step) string {
	if at == greeting && s.config.Security != Implicit {
		return " If it expects TLS at once, as port 465 does, an administrator can set --smtp-tls=implicit."
	}
	return ""
}

// refusal words a server's answer at a step.
func (s *Sender) refusal(at step, reply *textproto.Error) error {
	said := text.Excerpt(fmt.Sprintf("%d %s", reply.Code, reply.Msg), replyLimit)
	server, forGood := s.config.Server, reply.Code >= 500
	switch {
	case slices.Contains(wantsFirst, reply.Code):
		return fault.Wrap(reply, fault.Unavailable, "The mail server at %s wants TLS or a user name first (%s). An administrator can set --smtp-tls or --smtp-user.", server, said)
	case at == signingIn && forGood:
		return fault.Wrap(reply, fault.Unavailable, "The mail server at %s refuses the user name or password (%s). An administrator can change --smtp-user and --smtp-password-file.", server, said)
	case at == naming && forGood:
		return fault.Wrap(reply, fault.Unavailable, "The mail server at %s refuses mail from %s (%s). An administrator can change --smtp-from.", server, s.from.Address, said)
	case at == addressing && forGood:
		return fault.Wrap(reply, fault.Invalid, "The mail server refuses the address (%s).", said)
	case at == sending && forGood:
		return fault.Wrap(reply, fault.Invalid, "The mail server refuses the mail (%s).", said)
	}
	return fault.Wrap(reply, fault.Unavailable, "The mail server at %s takes no mail now (%s).", server, said)
}
