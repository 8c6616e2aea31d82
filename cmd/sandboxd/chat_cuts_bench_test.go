//go:build bench

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/benchtest"
)

// How connections are cut in the middle of a turn.
const (
	benchCuts = 1000
	longCut   = 25 * time.Millisecond // the longest life of a connection
	wordEvery = 4 * time.Millisecond
)

// TestChatCutsBench measures cuts alone, and writes nothing.
func TestChatCutsBench(t *testing.T) {
	b := &benches{t: t}
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	b.cuts(s)
}

// TestBinaryBench measures the size of what is built, and writes nothing.
func TestBinaryBench(t *testing.T) { (&benches{t: t}).binary() }

func (b *benches) binary() {
	info, err := os.Stat(builtBinary)
	if err != nil {
		b.t.Fatal(err)
	}
	b.sizeIn("MB", "bin/sandboxd, stripped", fmt.Sprintf("≤ %d MB", mostBinary/1_000_000), float64(info.Size())/1e6)
}

// counter is a provider whose answer has a word with the next number again and again, until enough is closed.
type counter struct {
	enough chan struct{}
	said   atomic.Int64
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(wordEvery)
	defer tick.Stop()
	for {
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"w%d \"},\"finish_reason\":null}]}\n\n", c.said.Add(1))
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-c.enough:
			fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// cutFollower knows a conversation from the changes that it was told of, over connections that are cut.
type cutFollower struct {
	t     *testing.T
	rev   int64
	state string
	texts map[int64]string // of the agent's answer, by item
}

// takes applies a change. It must be the next one, or whole, and its text begin where what is known ends.
func (f *cutFollower) takes(text string) {
	var c struct {
		Rev          int64
		Conversation *struct{ State string }
		Items        []struct {
			N          int64
			Kind, Text string
		}
		Appends []struct {
			N           int64
			Field, Text string
			At          int
		}
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		f.t.Fatalf("an event that is complete is %q: %v", text, err)
	}
	if f.rev > 0 && c.Rev != f.rev+1 && c.Conversation == nil {
		f.t.Errorf("change %d follows %d", c.Rev, f.rev)
	}
	if f.rev = c.Rev; c.Conversation != nil {
		f.state = c.Conversation.State
	}
	for _, it := range c.Items {
		if it.Kind == "text" {
			f.texts[it.N] = it.Text
		}
	}
	for _, a := range c.Appends {
		if had, ok := f.texts[a.N]; ok && a.Field == "text" {
			if len(had) != a.At {
				f.t.Errorf("change %d has text at %d of item %d, of which %d bytes are known", c.Rev, a.At, a.N, len(had))
			}
			f.texts[a.N] = had + a.Text
		}
	}
}

// follows takes the changes that come over one connection, until it ends or done is true. It gives how long the first one took.
func (f *cutFollower) follows(ctx context.Context, s *server, path string, done func() bool) (first time.Duration) {
	began := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/api/v1%s/events?after=%d", s.addr, path, f.rev), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.http.Do(r)
	if err != nil {
		return 0 // it was cut before that
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		f.t.Fatalf("events: %s", answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 8<<20)
	var data string
	for !done() && lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = text
		} else if lines.Text() == "" && data != "" { // else it may be cut
			f.takes(data)
			if data = ""; first == 0 {
				first = time.Since(began)
			}
		}
	}
	return first
}

// cuts follows a turn over a thousand connections, each of which is cut after a random time, and compares what was told with what was said.
func (b *benches) cuts(s *server) {
	provider := &counter{enough: make(chan struct{})}
	at := httptest.NewServer(provider)
	defer at.Close()
	if err := s.ask("PUT", "/providers/counter", map[string]any{"kind": "openai", "base_url": at.URL + "/v1", "models": []string{"counter"}}); err != nil {
		b.t.Fatal(err)
	}
	var c struct{ ID string }
	if status := s.call("POST", "/sandboxes/lab/conversations", map[string]any{"model": "counter"}, &c); status != http.StatusCreated {
		b.t.Fatalf("create: %d", status)
	}
	path := "/sandboxes/lab/conversations/" + c.ID
	if err := s.ask("POST", path+"/messages", map[string]any{"text": "Count."}); err != nil {
		b.t.Fatal(err)
	}
	f := &cutFollower{t: b.t, texts: map[int64]string{}}
	never, over := func() bool { return false }, func() bool { return f.state == "idle" || f.state == "failed" }
	var took []time.Duration
	for range benchCuts {
		ctx, cut := context.WithTimeout(b.t.Context(), rand.N(longCut))
		if first := f.follows(ctx, s, path, never); first > 0 {
			took = append(took, first)
		}
		cut()
		if over() {
			b.t.Fatalf("the turn ended by itself: %s", f.state)
		}
	}
	close(provider.enough)
	ctx, cancel := context.WithTimeout(b.t.Context(), eventLimit)
	defer cancel()
	f.follows(ctx, s, path, over)
	wrong := f.wrong(provider.said.Load())
	if wrong > 0 || f.state != "idle" {
		b.t.Errorf("after %d cuts %d of %d words are lost, told twice or out of order; the conversation is %q", benchCuts, wrong, provider.said.Load(), f.state)
	}
	if len(took) < benchCuts/4 {
		b.t.Errorf("only %d of %d connections told of something", len(took), benchCuts)
	}
	b.t.Logf("%d words, %d of %d connections told of something before they were cut", provider.said.Load(), len(took), benchCuts)
	b.record(benchtest.Amount("reconnect in mid-turn over SSE, 1,000 random cuts: words lost or twice", "≤ 0", "words", float64(wrong)))
	b.add("reconnect in mid-turn over SSE: to the first change that was missed", "", took, nil)
}

// wrong counts the words that are not where they were said.
func (f *cutFollower) wrong(said int64) (n int64) {
	var all strings.Builder
	for _, item := range slices.Sorted(maps.Keys(f.texts)) {
		all.WriteString(f.texts[item])
	}
	words := strings.Fields(all.String())
	for i := range max(said, int64(len(words))) {
		if i >= int64(len(words)) || i >= said || words[i] != fmt.Sprintf("w%d", i+1) {
			n++
		}
	}
	return n
}

func TestCuts_WhatIsLostOrTwiceCounts(t *testing.T) {
	for text, right := range map[string]bool{"w1 w2 w3 ": true, "w1 w3 ": false, "w1 w2 w2 w3 ": false, "w1 w2 ": false, "w1 w3 w2 ": false, "w1 w2 w3 w4 ": false, "w1 w2w3 ": false, "": false} {
		f := &cutFollower{t: t, texts: map[int64]string{2: text}}
		if n := f.wrong(3); (n == 0) != right {
			t.Errorf("of %q %d words are wrong", text, n)
		}
	}
}
