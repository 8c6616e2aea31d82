package web

import (
	"context"

	"github.com/a-h/templ"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
	"sandboxd/views"
)

// channelKind is how a kind of channels is shown.
type channelKind struct {
	icon, title, text        string
	label, placeholder, hint string // of the address
}

// channelKinds has every kind.
var channelKinds = map[alert.ChannelKind]channelKind{
	alert.Email: {
		icon: "mail", title: "E-mail", text: "Sends to one address, through the server's mail relay.",
		label: "Address", placeholder: "ada@example.com",
	},
	alert.Webhook: {
		icon: "globe", title: "Webhook", text: "Posts messages as JSON, signed as Standard Webhooks describes.",
		label: "URL", placeholder: "https://example.com/alerts", hint: "A signing secret is shown once, after you save.",
	},
	alert.Shoutrrr: {
		icon: "note", title: "Chat service", text: "Slack, Discord, Telegram, ntfy and others, through a shoutrrr address.",
		label: "Address", placeholder: "discord://token@id", hint: "It contains a secret, so it is not shown again.",
	},
}

// shownDeliveries are the last ones that the page lists of a channel.
const shownDeliveries = 10

// channelView makes a channel ready to show.
func (s *alertSettingHandlers) channelView(ctx context.Context, c alert.Channel) (views.AlertChannel, error) {
	k := channelKinds[c.Kind]
	v := views.AlertChannel{ID: c.ID, Name: c.Name, Kind: k.title, Icon: k.icon, Address: shownAddress(c)}
	sent, err := s.cfg.Alerts.Deliveries(ctx, c.Owner, c.ID)
	if fault.Is(err, fault.NotFound) { // deleted a moment ago
		return v, nil
	}
	if err != nil {
		return v, err
	}
	now := s.cfg.Now()
	for _, d := range sent[:min(len(sent), shownDeliveries)] {
		one := views.AlertDelivery{Subject: plainText(d.Message.Subject), Made: timeOf(d.Created, now), Problem: plainText(d.Problem)}
		switch {
		case !d.Sent.IsZero():
			one.State, one.Problem = views.State{Tone: "good", Icon: "check", Text: "Sent"}, ""
		case d.GivenUp:
			one.State = views.State{Tone: "bad", Icon: "state-failed", Text: "Not sent"}
		default:
			one.State, one.Next = views.State{Tone: "busy", Icon: "clock", Text: "Waiting"}, aheadOf(d.Next, now)
		}
		v.Sent = append(v.Sent, one)
	}
	return v, nil
}

// pageNewChannel shows the form of a channel of the kind that the address names, or asks for one.
func (s *alertSettingHandlers) pageNewChannel(_ context.Context, r *request) (templ.Component, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return nil, err
	}
	if kind := alert.ChannelKind(r.query("kind")); kind != "" {
		return s.channelForm(r, alert.Channel{Owner: owner, Kind: kind}, func(v *views.ChannelForm) {
			if off := channelOff(s.cfg.Alerts, kind); off != "" {
				v.Fault = off + "."
			}
		})
	}
	v := views.AlertKinds{Title: "Add channel", Text: "Where should messages go?", Next: alertSettingsURL(owner, "")}
	for _, kind := range []alert.ChannelKind{alert.Email, alert.Webhook, alert.Shoutrrr} {
		url := alertSettingsPath + "/channels/new?kind=" + string(kind)
		if owner == "" {
			url += "&owner=" + installation
		} else if kind == alert.Shoutrrr {
			continue // those lead anywhere, so only the installation has them
		}
		k := channelKinds[kind]
		v.Items = append(v.Items, views.KindChoice{Icon: k.icon, Title: k.title, Text: k.text, URL: url, Off: channelOff(s.cfg.Alerts, kind)})
	}
	return s.kindsPage(r, v)
}

// channelOff says why no channel of a kind can be added, or "". Only the sender of e-mail may be missing.
func channelOff(alerts *alert.Service, kind alert.ChannelKind) string {
	if kind != alert.Email || alerts.Sends(kind) {
		return ""
	}
	return "Needs --smtp on the server"
}

// pageChannel shows the form of a channel that there is.
func (s *alertSettingHandlers) pageChannel(ctx context.Context, r *request) (templ.Component, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return nil, err
	}
	c, err := s.channelOf(ctx, r, owner)
	if err != nil {
		return nil, err
	}
	return s.channelForm(r, c, nil)
}

// channelForm is the form of a channel. mend may put what was entered in the place of what the channel has. The address of a chat
// service never comes back to a page.
func (s *alertSettingHandlers) channelForm(r *request, c alert.Channel, mend func(*views.ChannelForm)) (templ.Component, error) {
	k, ok := channelKinds[c.Kind]
	if !ok {
		return nil, fault.Field("kind", "There is no kind %.40q of channels.", string(c.Kind))
	}
	v := views.ChannelForm{
		ID: c.ID, Owner: ownerQuery(c.Owner), Kind: string(c.Kind), Title: k.title, Text: k.text, Label: k.label, Placeholder: k.placeholder, Hint: k.hint,
		Name: views.Field{Value: c.Name}, Address: views.Field{Value: c.Address},
	}
	if c.ID != "" {
		v.Hint = ""
	}
	if c.Kind == alert.Shoutrrr {
		v.Address.Value = ""
		if v.Kept = c.ID != ""; v.Kept {
			v.Placeholder, v.Hint = shownAddress(c)+"://…", "Leave it empty to keep the address, which is not shown because it contains a secret."
		}
	}
	if mend != nil {
		mend(&v)
	}
	if r.byScript() {
		return views.ChannelSheet(v), nil
	}
	v.Frame = s.frame(r, "Channel", "settings")
	return views.ChannelFormPage(v), nil
}

// postedChannel gives the channel that the form is about: the one that the path names, or a new one.
func (s *alertSettingHandlers) postedChannel(ctx context.Context, r *request) (alert.Channel, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return alert.Channel{}, err
	}
	if r.param("id") != "" {
		return s.channelOf(ctx, r, owner)
	}
	return alert.Channel{Owner: owner, Kind: alert.ChannelKind(r.form("kind"))}, nil
}

// submitChannel adds a channel, or changes one. The secret of a new webhook is shown this once.
func (s *alertSettingHandlers) submitChannel(ctx context.Context, r *request) (string, error) {
	c, err := s.postedChannel(ctx, r)
	if err != nil {
		return "", err
	}
	isNew := c.ID == ""
	c.Name = r.field("name")
	if address := r.field("address"); address != "" || c.Kind != alert.Shoutrrr {
		c.Address = address
	}
	if c, err = s.cfg.Alerts.PutChannel(ctx, c); err != nil {
		return "", err
	}
	if !isNew || c.Secret == "" {
		return alertSettingsURL(c.Owner, "channel-saved"), nil
	}
	v := views.ChannelSecret{Name: c.Name, Secret: c.Secret, Next: alertSettingsURL(c.Owner, "")}
	if r.byScript() {
		r.answer = views.ChannelSecretSheet(v, true)
		return "", nil
	}
	v.Frame = s.frame(r, "Channel", "settings")
	r.answer = views.ChannelSecretPage(v)
	return "", nil
}

// againChannel shows the form again with its values, and the error beside its field. What was entered as the address of a chat service
// is a secret too, but the person has just typed it.
func (s *alertSettingHandlers) againChannel(ctx context.Context, r *request, cause error) (templ.Component, error) {
	c, err := s.postedChannel(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.channelForm(r, c, func(v *views.ChannelForm) {
		v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "address": &v.Address}, cause)
	})
}

// submitTestChannel sends a test message. A script gets the result, to stand below the channel, and the messages with the new one.
func (s *alertSettingHandlers) submitTestChannel(ctx context.Context, r *request) (string, error) {
	c, err := s.postedChannel(ctx, r)
	if err != nil {
		return "", err
	}
	result := views.ChannelResult{ID: c.ID, Problem: s.testChannel(ctx, r, c)}
	result.Sent = result.Problem == ""
	if r.byScript() {
		v, err := s.channelView(ctx, c)
		if err != nil {
			return "", err
		}
		r.answer = views.ChannelTested(result, v)
		return "", nil
	}
	r.answer, err = s.alertSettings(ctx, r, views.AlertSettings{Result: &result})
	return "", err
}

// submitDeleteChannel deletes a channel.
func (s *alertSettingHandlers) submitDeleteChannel(ctx context.Context, r *request) (string, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return "", err
	}
	return alertSettingsURL(owner, "channel-deleted"), s.deleteChannel(ctx, r, owner)
}
