package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"sandboxd/internal/alert"
)

// TestMain lets this program be sandboxd where sandboxd runs itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == sendChat {
		main()
	}
	os.Exit(m.Run())
}

func TestSendChat_IsHiddenAndSends(t *testing.T) {
	cmd, _, err := newRootCmd().Find([]string{sendChat})
	if err != nil || !cmd.Hidden || strings.Contains(configTable(newRootCmd()), sendChat) {
		t.Errorf("it is to be seen: %v", err)
	}
	t.Setenv("SANDBOXD_DATA", "/dev/null/none")
	a := &app{config: &Config{}}
	if err := a.newOutgoing(); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	defer s.Close()
	channel := alert.Channel{Kind: alert.Shoutrrr, Address: "generic+" + s.URL + "/hook"}
	if err := a.senders()[alert.Shoutrrr].Send(t.Context(), channel, alert.Message{ID: "1", Event: alert.Test}); err != nil {
		t.Fatal(err)
	}
	if path := <-got; path != "/hook" {
		t.Error(path)
	}
}
