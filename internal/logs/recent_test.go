package logs

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRecent_FindsByLevelAndTextAndPages(t *testing.T) {
	r := NewRecent()
	log := slog.New(r.Handler(slog.LevelDebug))
	log.Debug("request", "request_id", "abc", "status", 200)
	log.Info("listening")
	log.WithGroup("engine").With("host", "here").Warn("slow \"engine\"", "took", 1500*time.Millisecond, "time", "x")
	log.Error("request failed", "request_id", "AbC", "err", errors.New("line one\nline <two>"))
	log.Log(t.Context(), slog.LevelDebug-4, "too little")
	for want, q := range map[string]RecentQuery{
		"request failed|slow \"engine\"|listening|request": {},
		"request failed|slow \"engine\"":                   {Least: Warn},
		"request failed|request":                           {Text: "request_id=ABC"},
		"slow \"engine\"":                                  {Text: `slow "engine" engine={"host":"here","took":"1.5s","time":"x"`},
		"request failed":                                   {Text: "one\nline <t"},
	} {
		if got, next := r.Find(q); messages(got) != want || next != 0 {
			t.Errorf("%+v finds %q, next %d", q, messages(got), next)
		}
	}
	first, next := r.Find(RecentQuery{Limit: 3})
	rest, end := r.Find(RecentQuery{Limit: 3, Before: next})
	if messages(first) != "request failed|slow \"engine\"|listening" || messages(rest) != "request" || end != 0 {
		t.Errorf("pages are %q and %q", messages(first), messages(rest))
	}
	newer, _ := r.Find(RecentQuery{After: first[1].ID})
	if messages(newer) != "request failed" || r.Last() != newer[0].ID {
		t.Errorf("after the second there is %q", messages(newer))
	}
	if _, fields := RecentFields(first[0]); fmt.Sprint(fields) != "[{request_id AbC} {err line one\nline <two>}]" {
		t.Errorf("the fields are %q", fields)
	}
}

func messages(lines []Line) string {
	var out []string
	for _, l := range lines {
		message, _ := RecentFields(l)
		out = append(out, message)
	}
	return strings.Join(out, "|")
}

func TestRecent_IsBounded(t *testing.T) {
	r := NewRecent()
	log := slog.New(r.Handler(slog.LevelInfo))
	for i := range MaxRecent + 7 {
		log.Info("number", "n", i)
	}
	if len(r.lines) != MaxRecent || !strings.Contains(r.lines[0].Text, `"n":7`) {
		t.Errorf("%d records, from %s", len(r.lines), r.lines[0].Text)
	}
	for range 9 {
		log.Info(strings.Repeat("x", 1<<20))
	}
	if r.size > MaxRecentBytes || len(r.lines) != 3 {
		t.Errorf("%d records with %d bytes", len(r.lines), r.size)
	}
	log.Info(strings.Repeat("x", MaxRecentBytes))
	log.Info("after")
	if got, _ := r.Find(RecentQuery{}); messages(got) != "after" || r.size != len(got[0].Text) {
		t.Errorf("%d records with %d bytes", len(got), r.size)
	}
}

func TestRecent_ManyWriteAndRead(t *testing.T) {
	r := NewRecent()
	log := slog.New(r.Handler(slog.LevelInfo))
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 500 {
				log.Info("a", "b", "c")
				r.Find(RecentQuery{Limit: 3, Text: "b="})
			}
		})
	}
	running.Wait()
	for i, l := range r.lines[1:] {
		if l.ID <= r.lines[i].ID {
			t.Fatal("two records have one id")
		}
	}
	if len(r.lines) != 2000 {
		t.Errorf("%d records", len(r.lines))
	}
}
