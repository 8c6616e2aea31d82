package main

import (
	"crypto/x509"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"sandboxd/internal/alert"
	"sandboxd/internal/alert/mail"
	"sandboxd/internal/alert/shoutrrr"
	"sandboxd/internal/alert/webhook"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// maxSMTPPassword bounds the password of the mail server, in bytes.
const maxSMTPPassword = 4096

// alertFlags adds what messages about alerts need.
func (c *Config) alertFlags(f *pflag.FlagSet) {
	f.StringVar(&c.SMTP, "smtp", "", "mail server with its port that sends e-mail about alerts, such as mail.example.com:587 (default: none)")
	f.StringVar(&c.SMTPTLS, "smtp-tls", string(mail.STARTTLS), "how the connection to --smtp is protected: starttls, implicit (as on port 465) or none")
	f.StringVar(&c.SMTPUser, "smtp-user", "", "user name for --smtp, if it wants one")
	f.StringVar(&c.SMTPPasswordFile, "smtp-password-file", "", "file with the password of --smtp-user")
	f.StringVar(&c.SMTPFrom, "smtp-from", "", "sender of e-mail, needed with --smtp: an address such as alerts@example.com")
	f.BoolVar(&c.AlertPrivateAddresses, "alert-private-addresses", false, "let the webhooks of all users reach private and local addresses, this host's among them")
}

// mail gives what sends mail; nil without --smtp. It trusts the certificates of cas; nil for those of this host.
func (c *Config) mail(cas *x509.CertPool) (*mail.Sender, error) {
	security := mail.Security(c.SMTPTLS)
	if c.SMTP == "" {
		for _, f := range []struct{ name, value string }{{"smtp-user", c.SMTPUser}, {"smtp-password-file", c.SMTPPasswordFile}, {"smtp-from", c.SMTPFrom}} {
			if f.value != "" {
				return nil, fault.Field(f.name, "--%s needs --smtp, the mail server that it is for.", f.name)
			}
		}
		return nil, security.Check()
	}
	password, err := c.smtpPassword()
	if err != nil {
		return nil, err
	}
	return mail.New(mail.Config{Server: c.SMTP, Security: security, User: c.SMTPUser, Password: password, From: c.SMTPFrom, RootCAs: cas})
}

// smtpPassword reads the password of the mail server; "" when there is none.
func (c *Config) smtpPassword() (string, error) {
	if c.SMTPPasswordFile == "" {
		return "", nil
	}
	read, err := os.ReadFile(c.SMTPPasswordFile)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "The file of --smtp-password-file cannot be read: %v.", err)
	}
	password := strings.TrimRight(string(read), "\r\n")
	if password == "" || len(password) > maxSMTPPassword || text.Unprintable(password) {
		return "", fault.Field("smtp-password-file", "The file of --smtp-password-file must hold one password of at most %d characters.", maxSMTPPassword)
	}
	return password, nil
}

// outgoing is what messages about alerts are sent with.
type outgoing struct {
	mail *mail.Sender   // nil without --smtp
	cas  *x509.CertPool // whose certificates are trusted
}

// newOutgoing reads whom to trust and the password for mail. Beside this host's authorities, those for sandboxes are trusted, so that
// a mail server of one's own may have a certificate of one's own.
func (a *app) newOutgoing() (err error) {
	if a.cas, err = x509.SystemCertPool(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The certificates that this host trusts cannot be read: %v.", err)
	}
	extra, err := catalog.ExtraCA(catalog.HostCA(a.config.CAFile))
	if err != nil {
		return err
	}
	for _, c := range extra {
		a.cas.AppendCertsFromPEM(c.PEM)
	}
	a.mail, err = a.config.mail(a.cas)
	return err
}

// senders gives what carries messages about alerts. Email is not among them without --smtp.
func (a *app) senders() map[alert.ChannelKind]alert.Sender {
	out := map[alert.ChannelKind]alert.Sender{
		alert.Webhook:  webhook.New(webhook.Config{Private: a.config.AlertPrivateAddresses, RootCAs: a.cas}),
		alert.Shoutrrr: &shoutrrr.Sender{Program: []string{ownProgram, sendChat}},
	}
	if a.mail != nil {
		out[alert.Email] = a.mail
	}
	return out
}
