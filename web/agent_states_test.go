package web

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/chat"
	"sandboxd/internal/sandbox"
)

// talk begins a conversation of a user in a sandbox, and gives its id.
func (s *stage) talk(t *testing.T, box sandbox.Sandbox, user, text string) string {
	t.Helper()
	c, err := s.server.cfg.Chat.Create(t.Context(), chat.Conversation{Sandbox: box.ID, Owner: s.users[user].ID, Agent: chat.OwnAgent})
	if err == nil {
		_, err = s.server.cfg.Chat.Send(t.Context(), c.ID, chat.Queued{Text: text, User: s.users[user].ID})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

func TestAgentStates_AreInTheListAndTold(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "lab", nil)
	list, first := s.follow("ada", s.topicOf("ada", "/"))
	if has(first, "badges-"+box.ID+" outerHTML") {
		t.Errorf("begins with %v", targets(first))
	}
	frame, _ := s.follow("ada", framePath)
	others, _ := s.follow("root", s.topicOf("root", "/"))
	id := s.talk(t, box, "ada", "ask")
	if e := list.until("asks you"); !strings.Contains(e, "/sandboxes/lab#chat="+id) {
		t.Errorf("the list says %s", e)
	}
	if e := frame.until("rm -rf build"); !has(e, "chat-news beforeend") || !strings.Contains(e, "The agent asks you – lab") {
		t.Errorf("the frame says %s", e)
	}
	if e := others.until("asks you"); has(e, "chat-news beforeend") {
		t.Errorf("another person is told %s", e)
	}
	if got := textOf(s.get("ada", "/").need("#badges-" + box.ID)); !strings.Contains(got, "asks you") {
		t.Errorf("the list has %q", got)
	}
	if err := s.server.cfg.Chat.Answer(t.Context(), id, "q1", "yes", s.users["ada"].ID); err != nil {
		t.Fatal(err)
	}
	if e := frame.until("The agent is done"); !has(e, "chat-news beforeend") {
		t.Errorf("the frame says %s", e)
	}
}

// badgeOf waits until the agent of a sandbox is in a state, and gives what the list says of it d later.
func (s *stage) badgeOf(t *testing.T, box sandbox.Sandbox, state chat.State, d time.Duration) *html.Node {
	t.Helper()
	told := s.server.cfg.ChatStates.Subscribe()
	defer told.Close()
	for {
		if c, any := s.server.cfg.ChatStates.Of(box.ID); any && c.State == state {
			s.server.cfg.Now = func() time.Time { return c.Since.Add(d) }
			return in(s.get("ada", "/").need("#badges-"+box.ID), "a")
		}
		<-told.C
	}
}

func TestAgentStates_TheListSaysForHowLongAnAgentWorks(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "lab", nil)
	id := s.talk(t, box, "ada", "work")
	for d, want := range map[time.Duration]string{3*time.Minute + time.Second: "working 3 min", 2*time.Hour + time.Minute: "working 2 h"} {
		badge := s.badgeOf(t, box, chat.Working, d)
		if got := textOf(badge); got != want || attr(badge, "href") != conversationURL("lab", id) || attr(badge, "title") != "The agent works" {
			t.Errorf("after %s the list has %q, want %q: %s %s", d, got, want, attr(badge, "href"), attr(badge, "title"))
		}
	}
}

func TestAgentStates_TheListSaysThatAnAgentFailedAndWhy(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "lab", nil)
	id := s.talk(t, box, "ada", "fail")
	badge := s.badgeOf(t, box, chat.Failed, 3*time.Minute)
	if got := textOf(badge); got != "agent failed" || attr(badge, "href") != conversationURL("lab", id) || !strings.Contains(attr(badge, "class"), "tone-bad") {
		t.Errorf("the list has %q: %s %s", got, attr(badge, "href"), attr(badge, "class"))
	}
	if why := attr(badge, "title"); !strings.Contains(why, "does not answer.") || strings.Contains(why, "\u202e") {
		t.Errorf("the reason is %q", why)
	}
}

func TestAgentStates_ANotificationShowsTheCommandCutVisibly(t *testing.T) {
	long := "echo hi\u202e\n" + strings.Repeat("x", 300)
	got := newsOf(&chat.Activity{Asks: &chat.Ask{Title: "Run it?", Text: long}})
	if !strings.HasPrefix(got, "echo hi‹U+202E›‹LF›xxx") || !strings.HasSuffix(got, "x…") || len(got) > 300 {
		t.Errorf("it shows %q", got)
	}
}

func TestAgentStates_WhatAPersonDidIsNoNews(t *testing.T) {
	for _, c := range []struct {
		was, is chat.State
		want    bool
	}{{chat.Working, chat.Idle, true}, {chat.Asking, chat.Idle, true}, {chat.Failed, chat.Idle, false}, {chat.Working, chat.Failed, true}, {chat.Idle, chat.Working, false}, {chat.Failed, "", false}} {
		if got := isNews(&chat.Activity{Conversation: chat.Conversation{State: c.is}, Was: c.was}); got != c.want {
			t.Errorf("%s to %s: %v", c.was, c.is, got)
		}
	}
}
