package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// channelShape is a channel as programs see it. Only the answer to its making has Secret.
type channelShape struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Address string `json:"address"` // of a chat service its name alone
	Secret  string `json:"secret,omitempty"`
}

func newChannelShape(c alert.Channel) channelShape {
	return channelShape{ID: c.ID, Name: c.Name, Kind: string(c.Kind), Address: shownAddress(c)}
}

// shownAddress is what people see of a channel's address. That of a chat service has its secrets in it: its scheme names the service.
func shownAddress(c alert.Channel) string {
	if c.Kind != alert.Shoutrrr {
		return c.Address
	}
	scheme, _, found := strings.Cut(c.Address, ":")
	if !found {
		return ""
	}
	return scheme
}

type channelsShape struct {
	Channels []channelShape `json:"channels"`
}

// apiAlertChannels lists the caller's channels, or the installation's.
func (s *alertSettingHandlers) apiAlertChannels(ctx context.Context, r *request, _ none) (reply, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return reply{}, err
	}
	channels, err := s.cfg.Alerts.Channels(ctx, owner)
	if err != nil {
		return reply{}, err
	}
	out := channelsShape{Channels: make([]channelShape, 0, len(channels))}
	for _, c := range channels {
		out.Channels = append(out.Channels, newChannelShape(c))
	}
	return reply{body: out}, nil
}

type newChannelBody struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Address string `json:"address"`
}

// apiCreateAlertChannel makes a channel. The secret of a webhook is in this answer and nowhere else.
func (s *alertSettingHandlers) apiCreateAlertChannel(ctx context.Context, r *request, in newChannelBody) (reply, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return reply{}, err
	}
	r.object = text.OneLine(in.Name, maxEntered)
	c := alert.Channel{Owner: owner, Name: in.Name, Kind: alert.ChannelKind(in.Kind), Address: in.Address}
	c, err = s.cfg.Alerts.PutChannel(ctx, c)
	if err != nil {
		return reply{}, err
	}
	out := newChannelShape(c)
	out.Secret = c.Secret
	return reply{status: http.StatusCreated, location: apiPrefix + "/alerts/channels/" + c.ID, body: out}, nil
}

// channelOf gives the channel that the path names, of the owner that the query names.
func (s *alertSettingHandlers) channelOf(ctx context.Context, r *request, owner string) (alert.Channel, error) {
	channels, err := s.cfg.Alerts.Channels(ctx, owner)
	if err != nil {
		return alert.Channel{}, err
	}
	for _, c := range channels {
		if c.ID == r.param("id") {
			r.object = c.Name
			return c, nil
		}
	}
	return alert.Channel{}, fault.New(fault.NotFound, "There is no such channel.")
}

type channelBody struct {
	Name    string `json:"name"`
	Address string `json:"address"` // "" to keep it
}

// apiChangeAlertChannel changes a channel's name and address. Its kind and secret stay.
func (s *alertSettingHandlers) apiChangeAlertChannel(ctx context.Context, r *request, in channelBody) (reply, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return reply{}, err
	}
	c, err := s.channelOf(ctx, r, owner)
	if err != nil {
		return reply{}, err
	}
	c.Name = in.Name
	if in.Address != "" {
		c.Address = in.Address
	}
	if c, err = s.cfg.Alerts.PutChannel(ctx, c); err != nil {
		return reply{}, err
	}
	return reply{body: newChannelShape(c)}, nil
}

// apiDeleteAlertChannel deletes a channel. Rules that named it tell the others.
func (s *alertSettingHandlers) apiDeleteAlertChannel(ctx context.Context, r *request, _ none) (reply, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.deleteChannel(ctx, r, owner)
}

// deleteChannel deletes the channel that the path names.
func (s *alertSettingHandlers) deleteChannel(ctx context.Context, r *request, owner string) error {
	c, err := s.channelOf(ctx, r, owner)
	if err != nil {
		return err
	}
	return s.cfg.Alerts.DeleteChannel(ctx, owner, c.ID)
}

// testedShape says how a test message went.
type testedShape struct {
	Sent    bool   `json:"sent"`
	Problem string `json:"problem"` // why it was not
}

// apiTestAlertChannel sends a test message and waits until it was taken, or not.
func (s *alertSettingHandlers) apiTestAlertChannel(ctx context.Context, r *request, _ none) (reply, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return reply{}, err
	}
	c, err := s.channelOf(ctx, r, owner)
	if err != nil {
		return reply{}, err
	}
	problem := s.testChannel(ctx, r, c)
	return reply{body: testedShape{Sent: problem == "", Problem: problem}}, nil
}

// testChannel sends a test message, and says why that did not go well, or "".
func (s *alertSettingHandlers) testChannel(ctx context.Context, r *request, c alert.Channel) string {
	err := s.cfg.Alerts.Test(ctx, c.Owner, c.ID)
	r.problem, r.failed = err, !fault.Is(err, fault.Limited) && !fault.Is(err, fault.NotFound)
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return "The message was not taken in time."
	case fault.Is(err, fault.Internal): // its message says nothing
		s.log.Warn("send a test message", "request_id", r.id, "channel", c.ID, "err", err)
	}
	return fault.Message(err)
}

// deliveryShape is one message on its way to a channel, or its end.
type deliveryShape struct {
	ID        string     `json:"id"`
	MessageID string     `json:"message_id"`
	Event     string     `json:"event"`
	Subject   string     `json:"subject"`
	CreatedAt time.Time  `json:"created_at"`
	NextAt    *time.Time `json:"next_at"` // null once it is over
	SentAt    *time.Time `json:"sent_at"` // null until it was taken
	Attempts  int        `json:"attempts"`
	GivenUp   bool       `json:"given_up"`
	Problem   string     `json:"problem"` // of the last try
}

type deliveriesShape struct {
	Deliveries []deliveryShape `json:"deliveries"`
}

// apiAlertDeliveries lists what was sent to a channel lately, newest first.
func (s *alertSettingHandlers) apiAlertDeliveries(ctx context.Context, r *request, _ none) (reply, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return reply{}, err
	}
	found, err := s.cfg.Alerts.Deliveries(ctx, owner, r.param("id"))
	if err != nil {
		return reply{}, err
	}
	out := deliveriesShape{Deliveries: make([]deliveryShape, 0, len(found))}
	for _, d := range found {
		out.Deliveries = append(out.Deliveries, deliveryShape{
			ID: d.ID, MessageID: d.Message.ID, Event: string(d.Message.Event), Subject: d.Message.Subject, CreatedAt: d.Created.UTC(),
			NextAt: timeOrNull(d.Next), SentAt: timeOrNull(d.Sent), Attempts: d.Attempts, GivenUp: d.GivenUp, Problem: d.Problem,
		})
	}
	return reply{body: out}, nil
}
