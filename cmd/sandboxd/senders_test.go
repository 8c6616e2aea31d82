package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

func TestMail_WhatDoesNotGoTogetherIsRefusedAtStart(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, empty, two := file("good", "correct horse\n"), file("empty", "\n"), file("two", "one\ntwo\n")
	for args, field := range map[string]string{
		"": "",
		"--smtp=m.example.com:587 --smtp-from=a@example.com":                                                             "",
		"--smtp=m.example.com:587 --smtp-from=a@example.com --smtp-user=ada --smtp-password-file=" + good:                "",
		"--smtp=127.0.0.1:25 --smtp-tls=none --smtp-from=a@example.com --smtp-user=ada --smtp-password-file=" + good:     "",
		"--smtp=m.example.com:25 --smtp-tls=none --smtp-from=a@example.com":                                              "",
		"--smtp=m.example.com:25 --smtp-tls=none --smtp-from=a@example.com --smtp-user=ada --smtp-password-file=" + good: "smtp-tls",
		"--smtp-tls=tls":                     "smtp-tls",
		"--smtp-user=ada":                    "smtp-user",
		"--smtp-password-file=" + good:       "smtp-password-file",
		"--smtp-from=a@example.com":          "smtp-from",
		"--smtp=m.example.com:587":           "smtp-from",
		"--smtp=m.example.com --smtp-from=a": "smtp",
		"--smtp=m.example.com:587 --smtp-from=a@example.com --smtp-user=ada":                               "smtp-password-file",
		"--smtp=m.example.com:587 --smtp-from=a@example.com --smtp-password-file=" + good:                  "smtp-user",
		"--smtp=m.example.com:587 --smtp-from=a@example.com --smtp-user=ada --smtp-password-file=" + empty: "smtp-password-file",
		"--smtp=m.example.com:587 --smtp-from=a@example.com --smtp-user=ada --smtp-password-file=" + two:   "smtp-password-file",
	} {
		c := &Config{}
		if err := newServeCmd(c).ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := c.check(); fault.FieldOf(err) != field || (err != nil) != (field != "") || strings.Contains(fault.Message(err), "horse") {
			t.Errorf("%s: %v", args, err)
		}
	}
	c := &Config{SMTP: "m.example.com:587", SMTPPasswordFile: filepath.Join(dir, "none")}
	if _, err := c.mail(nil); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

func TestSenders_AreThoseThatAreConfigured(t *testing.T) {
	a := &app{config: &Config{}}
	if err := a.newOutgoing(); err != nil {
		t.Fatal(err)
	}
	if s := a.senders(); len(s) != 2 || s[alert.Webhook] == nil || s[alert.Shoutrrr] == nil {
		t.Errorf("%v", s)
	}
	a.config.SMTP, a.config.SMTPFrom = "mail.example.com:587", "alerts@example.com"
	if err := a.newOutgoing(); err != nil {
		t.Fatal(err)
	}
	if s := a.senders(); len(s) != 3 || s[alert.Email] == nil {
		t.Errorf("%v", s)
	}
}

func TestSenders_PrivateAddressesAndOwnCertificatesWhereAllowed(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	channel := alert.Channel{Address: s.URL, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	for _, allowed := range []bool{true, false} {
		a := &app{config: &Config{CAFile: path, AlertPrivateAddresses: allowed}}
		if err := a.newOutgoing(); err != nil {
			t.Fatal(err)
		}
		err := a.senders()[alert.Webhook].Send(t.Context(), channel, alert.Message{ID: "1", Event: alert.Test})
		if (err == nil) != allowed || !allowed && !fault.Is(err, fault.Invalid) {
			t.Errorf("allowed %v: %v", allowed, err)
		}
	}
}
