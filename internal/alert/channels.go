package alert

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// noSender says that there is no Sender of a kind. In sandboxd only that for e-mail may be missing.
const noSender = "This server cannot send e-mail: it was started without --smtp."

// Limits of channels.
const (
	MaxChannels = 20 // of one owner
	MaxAddress  = 2048
	maxSecret   = 256
	secretBytes = 24 // of a webhook that gets one
)

// Sends reports whether messages can be sent to channels of a kind.
func (s *Service) Sends(kind ChannelKind) bool { return s.c.Senders[kind] != nil }

// checkChannel gives a channel as it is kept. Kinds: Invalid, NotFound.
func (s *Service) checkChannel(ctx context.Context, c Channel) (Channel, error) {
	before := Channel{}
	if c.ID != "" {
		var err error
		if before, err = s.channel(ctx, c.Owner, c.ID); err != nil {
			return c, err
		}
	} else if all, err := s.Channels(ctx, c.Owner); err != nil {
		return c, err
	} else if len(all) >= MaxChannels {
		return c, fault.New(fault.Invalid, "There can be at most %d channels. Delete one first.", MaxChannels)
	} else {
		c.ID = sandbox.NewID()
	}
	c.Name = text.Trim(c.Name)
	switch {
	case c.Name == "" || len(c.Name) > MaxName || text.Unprintable(c.Name):
		return c, fault.Field("name", "The name has 1 to %d bytes of printable characters.", MaxName)
	case c.Kind != Email && c.Kind != Webhook && c.Kind != Shoutrrr:
		return c, fault.Field("kind", "The kind is %s, %s or %s.", Email, Webhook, Shoutrrr)
	case c.Kind == Shoutrrr && c.Owner != "":
		return c, fault.Field("kind", "Chat services are only for the installation's channels.")
	case s.c.Senders[c.Kind] == nil:
		return c, fault.Field("kind", noSender)
	}
	return s.checkSecrets(c, before)
}

// checkSecrets checks a channel's address and secret. One that is left out stays as it was, where it is secret.
func (s *Service) checkSecrets(c, before Channel) (Channel, error) {
	if c.Address == "" && c.Kind == Shoutrrr && before.Kind == Shoutrrr {
		c.Address = before.Address
	}
	if c.Address == "" || len(c.Address) > MaxAddress || text.Unprintable(c.Address) {
		return c, fault.Field("address", "The address has 1 to %d bytes of printable characters.", MaxAddress)
	}
	switch {
	case c.Kind != Webhook:
		c.Secret = ""
	case c.Secret == "" && before.Secret != "":
		c.Secret = before.Secret
	case c.Secret == "":
		var key [secretBytes]byte
		rand.Read(key[:]) // never fails
		c.Secret = "whsec_" + base64.StdEncoding.EncodeToString(key[:])
	case len(c.Secret) > maxSecret || text.Unprintable(c.Secret):
		return c, fault.Field("secret", "The secret has at most %d bytes of printable characters.", maxSecret)
	}
	return c, s.c.Senders[c.Kind].Check(c)
}
