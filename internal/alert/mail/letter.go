package mail

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	netmail "net/mail"
	"strings"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"sandboxd/internal/alert"
	"sandboxd/internal/alert/plain"
	"sandboxd/internal/text"
)

// memberLimit is how many alerts a mail names; of more it tells the number.
const memberLimit = 100

// nameLimit bounds the names of a rule and a channel, in bytes.
const nameLimit = 100

// page is the mail in HTML. It loads nothing from anywhere.
var page = template.Must(template.New("mail").Parse(`<!doctype html>
<html><body style="font-family:sans-serif">
<h2>{{.Subject}}</h2>
{{if .Test}}<p>This is a test. Messages about alerts arrive here.</p>
{{end}}{{range .Sections}}<h3>{{.Title}}</h3>
<ul>
{{range .Members}}<li><strong>{{.Name}}</strong>{{if .Text}}: {{.Text}}{{end}}{{if .When}}<br><small>{{.When}}</small>{{end}}</li>
{{end}}{{if .More}}<li>and {{.More}} more</li>
{{end}}</ul>
{{end}}{{if .Link}}<p><a href="{{.Link}}">Open the alerts</a></p>
{{end}}<p><small>{{.Why}}</small></p>
</body></html>
`))

// compose writes the whole mail, as it goes over the wire.
func (s *Sender) compose(c alert.Channel, m alert.Message) ([]byte, error) {
	subject, reason := plain.Subject(m), why(c, m)
	var html, out bytes.Buffer
	err := page.Execute(&html, map[string]any{
		"Subject": subject, "Test": m.Event == alert.Test, "Sections": plain.Sections(m, memberLimit), "Link": m.Link, "Why": reason,
	})
	if err != nil {
		return nil, fmt.Errorf("write mail as HTML: %w", err)
	}
	letter := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	letter.FromMailAddress(s.from)
	letter.ToMailAddress(&netmail.Address{Address: c.Address})
	letter.Subject(header(subject))
	letter.SetDateWithValue(m.Time)
	letter.SetMessageIDWithValue(m.ID + "@" + s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:])
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // so that no absence note comes back
	letter.SetBulk()
	letter.SetBodyString(gomail.TypeTextPlain, subject+"\n\n"+plain.Text(m, memberLimit)+"\n"+reason+"\n")
	letter.AddAlternativeString(gomail.TypeTextHTML, html.String())
	if _, err := letter.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("write mail: %w", err)
	}
	return out.Bytes(), nil
}

// wordLimit bounds the bytes of text in one encoded word, so that the word has at most 75 bytes. See RFC 2047.
const wordLimit = 45

// header gives text as it stands in a header. What looks like an encoded word is encoded itself, since a mail program would decode it; the
// rest is encoded when it is written, if it must be.
func header(s string) string {
	if !strings.Contains(s, "=?") {
		return s
	}
	var words []string
	for from := 0; from < len(s); {
		end := min(from+wordLimit, len(s))
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end--
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(s[from:end]))+"?=")
		from = end
	}
	return strings.Join(words, " ") // which a mail program leaves out
}

// why says why the mail is sent, and where to end that.
func why(c alert.Channel, m alert.Message) string {
	channel, rule := text.Excerpt(c.Name, nameLimit), text.Excerpt(m.Rule, nameLimit)
	switch {
	case m.Event == alert.Test:
		return fmt.Sprintf("You get this mail because a test of the channel %q was asked for in sandboxd.", channel)
	case rule == "":
		return fmt.Sprintf("You get this mail because rules of sandboxd send to the channel %q. Change or delete it in Settings → Alerts.", channel)
	}
	return fmt.Sprintf("You get this mail because the rule %q of sandboxd sends to the channel %q. Change or delete either in Settings → Alerts.", rule, channel)
}
