//go:build bench

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/sqlite"
)

// How much is measured of conversations.
const (
	benchDeltas   = 500
	deltaEvery    = 20 * time.Millisecond
	paragraph     = 10 // words, as answers have them
	benchMessages = 5000
	openings      = 50
)

// chats measures how soon what a provider says is told to a client, and how soon a long conversation is there.
func (b *benches) chats() {
	s := newServer(b.t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	b.group(s, "deltas", func() { b.deltas(s) })
	b.group(s, "delta over ACP", func() { b.deltasOverACP(s) })
	b.group(s, "cuts", func() { b.cuts(s) })
	b.group(s, "delta to the pane", func() { b.deltasToThePane(s) })
	b.group(s, "long conversation", func() { b.longConversation(s) })
	b.group(s, "pane", func() { b.chatPane(s) })
}

// clock is a provider whose answer is the time at which each of its words is sent, in nanoseconds.
func clock(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(deltaEvery)
	defer tick.Stop()
	for i := range benchDeltas {
		reason := "null"
		if i == benchDeltas-1 {
			reason = `"stop"`
		}
		end := " "
		if i%paragraph == paragraph-1 {
			end = `\n\n`
		}
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d%s\"},\"finish_reason\":%s}]}\n\n", time.Now().UnixNano(), end, reason)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (b *benches) deltas(s *server) {
	provider := httptest.NewServer(http.HandlerFunc(clock))
	defer provider.Close()
	if err := s.ask("PUT", "/providers/clock", map[string]any{"kind": "openai", "base_url": provider.URL + "/v1", "models": []string{"clock"}}); err != nil {
		s.t.Fatal(err)
	}
	all := s.deltasOf(map[string]any{"model": "clock"}, "What time is it?")
	b.add("delta from the provider to the client's event", "p50 ≤ 15 ms", all, nil)
}

// deltasOverACP is the same with an agent that is a program in the sandbox, and says the time.
func (b *benches) deltasOverACP(s *server) {
	s.hasScriptedAgent("lab")
	all := s.deltasOf(map[string]any{"agent": "scripted"}, fmt.Sprintf("clock %d", benchDeltas))
	b.add("delta from an agent over ACP to the client's event", "p50 ≤ 15 ms", all, nil)
}

// deltasOf gives how old the words of an answer were when they were told.
func (s *server) deltasOf(conversation map[string]any, message string) []time.Duration {
	s.t.Helper()
	var c struct{ ID string }
	if status := s.call("POST", "/sandboxes/lab/conversations", conversation, &c); status != http.StatusCreated {
		s.t.Fatalf("create: %d", status)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), eventLimit)
	defer cancel()
	took := make(chan []time.Duration, 1)
	lines := s.follow(ctx, "/sandboxes/lab/conversations/"+c.ID+"/events")
	go func() { took <- delays(lines) }()
	if err := s.ask("POST", "/sandboxes/lab/conversations/"+c.ID+"/messages", map[string]any{"text": message}); err != nil {
		s.t.Fatal(err)
	}
	all := <-took
	if len(all) < benchDeltas/2 {
		s.t.Fatalf("%d of %d words came", len(all), benchDeltas)
	}
	return all
}

// follow reads a stream of server-sent events.
func (s *server) follow(ctx context.Context, path string) *bufio.Scanner {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/api/v1"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<22)
	return lines
}

// delays gives how old each word was when it was told, until the turn is over.
func delays(lines *bufio.Scanner) (all []time.Duration) {
	for lines.Scan() {
		now := time.Now()
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var c struct {
			Conversation *struct {
				State string
				Turn  int
			}
			Items []struct {
				Kind, Text string
				Open       bool
			}
			Appends []struct{ Text string }
		}
		if json.Unmarshal([]byte(text), &c) != nil {
			continue
		}
		var said string
		for _, it := range c.Items {
			if it.Kind == "text" && it.Open {
				said += it.Text
			}
		}
		for _, a := range c.Appends {
			said += a.Text
		}
		for word := range strings.FieldsSeq(said) {
			if at, err := strconv.ParseInt(word, 10, 64); err == nil {
				all = append(all, now.Sub(time.Unix(0, at)))
			}
		}
		if c.Conversation != nil && c.Conversation.State == "idle" && c.Conversation.Turn > 0 {
			return all
		}
	}
	return all
}

// longConversation measures what a page asks when it opens a conversation of many messages: the last of its items.
func (b *benches) longConversation(s *server) {
	var c struct{ ID string }
	if status := s.call("POST", "/sandboxes/lab/conversations", map[string]any{}, &c); status != http.StatusCreated {
		s.t.Fatalf("create: %d", status)
	}
	s.stop()
	fillConversation(s.t, s.data+"/sandboxd.db", c.ID)
	s.start()
	var took []time.Duration
	for range openings {
		began := time.Now()
		var v struct{ Items []struct{ N int } }
		if s.call("GET", "/sandboxes/lab/conversations/"+c.ID, nil, &v); len(v.Items) != 100 || v.Items[99].N != benchMessages {
			s.t.Fatalf("%d items", len(v.Items))
		}
		took = append(took, time.Since(began))
	}
	b.add("open a conversation of 5,000 messages", "≤ 300 ms to the last message", took, nil)
}

// fillConversation puts messages into a conversation.
func fillConversation(t testing.TB, path, id string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now, err := db.Chat().Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	change := chat.Change{Rev: now.Rev + 1, Conversation: &now}
	now.Items, now.Turn, now.Rev = benchMessages, benchMessages/2, now.Rev+1
	for n := range int64(benchMessages) {
		kind := chat.Message
		if n%2 == 1 {
			kind = chat.Text
		}
		change.Items = append(change.Items, chat.Item{N: n + 1, Turn: n/2 + 1, Kind: kind, Rev: change.Rev, Data: json.RawMessage(`{}`), At: time.Now(),
			Text: fmt.Sprintf("Message %d. %s", n+1, strings.Repeat("It has some words, **bold** ones and `code`. ", 8))})
	}
	if err := db.Chat().Apply(t.Context(), id, change); err != nil {
		t.Fatal(err)
	}
}
