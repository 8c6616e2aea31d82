//go:build bench

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// How much is measured of rest and wake.
const (
	benchWakes   = 25
	benchStarts  = 15
	benchClaims  = 20
	benchWaiters = 100
	benchAsleep  = 500
	benchSweeps  = 50
)

// pooled is a template whose sandboxes are made in advance.
const pooled = `name: pooled
title: Pooled
description: Made in advance.
icon: box
image: debian:trixie-slim
profile: dev
size: {cpus: 1, memory: 256MiB, pids: 128, disk: 1GiB}
pool: 10
`

// rests measures waking beside the raw engine.
func (b *benches) rests(raw *rawEngine) {
	t := b.t
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	c := raw.Container(s.container("lab"))
	b.group(s, "thaws", func() { b.thaws(s, c) })
	b.group(s, "wakes", func() { b.wakes(s, c) })
	b.group(s, "waiters", func() { b.waiters(s) })
}

// thaws measures the first byte from a frozen sandbox, beside a raw unpause of the same container.
func (b *benches) thaws(s *server, c *rawContainer) {
	t := b.t
	var ours, base []time.Duration
	for n := range benchWakes + 2 {
		s.sleeps("lab", "frozen")
		one := s.firstByte("3000-lab")
		if err := c.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.until("it is seen to be frozen", func() bool { return s.rest("lab").State == "frozen" })
		began := time.Now()
		if err := c.Unpause(t.Context()); err != nil {
			t.Fatal(err)
		}
		two := time.Since(began)
		s.until("it is seen to run", func() bool { return s.rest("lab").State == "running" })
		if n >= 2 {
			ours, base = append(ours, one), append(base, two)
		}
	}
	b.add("wake of a frozen sandbox to the first byte", "p50 ≤ raw unpause + 10 ms", ours, base)
}

// firstByte asks for a kilobyte and gives the time to its first byte.
func (s *server) firstByte(sub string) time.Duration {
	s.t.Helper()
	took, err := firstByte(straight(s.addr), "http://"+s.host(sub)+"/small", s.token)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", sub, err, s.tail())
	}
	return took
}

// wakes measures the first byte from a stopped one, beside a raw start of the same container to the same byte, which is
// asked for at the container's address as soon as it answers.
func (b *benches) wakes(s *server, c *rawContainer) {
	t := b.t
	url := "http://" + s.address("lab") + ":3000/small"
	var ours, base []time.Duration
	for n := range benchStarts + 1 {
		s.sleeps("lab", "asleep")
		one := s.firstByte("3000-lab")
		s.sleeps("lab", "asleep")
		began := time.Now()
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Timeout: time.Second}
		s.until("the container answers", func() bool { _, err := firstByte(client, url, ""); return err == nil })
		two := time.Since(began)
		s.until("it is seen to run", func() bool { return s.rest("lab").State == "running" })
		if n > 0 {
			ours, base = append(ours, one), append(base, two)
		}
	}
	b.add("wake of a stopped sandbox to the first byte", "p50 ≤ 1.2 × raw start to the same byte", ours, base)
}

// waiters lets a hundred wait for one sandbox that is asleep: the first that is answered is the base.
func (b *benches) waiters(s *server) {
	var last, first []time.Duration
	for range 5 {
		s.sleeps("lab", "asleep")
		client, url := straight(s.addr), "http://"+s.host("3000-lab")+"/small"
		took := make([]time.Duration, benchWaiters)
		var g errgroup.Group
		for n := range took {
			g.Go(func() (err error) { took[n], err = firstByte(client, url, s.token); return err })
		}
		if err := g.Wait(); err != nil {
			b.t.Fatalf("%v\n%s", err, s.tail())
		}
		last, first = append(last, slices.Max(took)), append(first, slices.Min(took))
	}
	b.add("100 waiters on one sleeping sandbox: the last, beside the first", "≤ first + 100 ms", last, first)
}

// claims measures create → first command answered with sandboxes made in advance, beside raw create, start and exec.
func (b *benches) claims(raw *rawEngine) {
	t := b.t
	dir := echoTemplates(t)
	writeTemplate(t, dir, "pooled", pooled)
	s := newServer(t, "--prebuild", "", "--templates", dir)
	base := func(int) (func() error, func() error) {
		var c *rawContainer
		return func() (err error) {
				if c, err = raw.CreateStart(b.t.Context(), "debian:trixie-slim", ""); err == nil {
					err = c.Exec(b.t.Context(), "true")
				}
				return err
			},
			func() error { return c.Remove(b.t.Context()) }
	}
	ours := func(int) (func() error, func() error) {
		var made struct{ Name string }
		return func() error {
				if status := s.call("POST", "/sandboxes?wait=ready", map[string]any{"template": "pooled"}, &made); status != http.StatusCreated {
					return fmt.Errorf("create: %d", status)
				}
				return s.ask("POST", "/sandboxes/"+made.Name+"/exec", map[string]any{"command": []string{"true"}})
			},
			func() error { return s.ask("DELETE", "/sandboxes/"+made.Name+"?wait=gone", nil) }
	}
	for width, goal := range map[int]string{1: "p50 ≤ 40 ms", 10: "p95 ≤ 120 ms"} {
		b.group(s, "claims c="+strconv.Itoa(width), func() {
			var a, z []time.Duration
			for round := range benchClaims/width + 2 {
				s.untilWithin(2*time.Minute, "the pool is full", func() bool { return s.paused() == 10 })
				one, two := b.together(width, ours), b.together(width, base)
				if round > 0 {
					a, z = append(a, one...), append(z, two...)
				}
			}
			b.add("claim from the pool to the first command answered, c="+strconv.Itoa(width), goal, a, z)
		})
	}
}

// paused counts this server's containers that are frozen.
func (s *server) paused() int {
	return len(strings.Fields(engine(s.t, "ps", "-q", "--filter", "label=sandboxd.instance="+s.instance(), "--filter", "status=paused")))
}

// sweeps measures one look of the reaper at a store with five hundred that are asleep.
func (b *benches) sweeps() {
	t := b.t
	a, stop := b.inside()
	defer stop()
	now := time.Now().UTC().Add(-time.Hour)
	for n := range benchAsleep {
		err := a.db.Sandboxes().Insert(t.Context(), sandbox.Sandbox{
			ID: sandbox.NewID(), Name: fmt.Sprintf("row-%04d", n), State: sandbox.Asleep, Created: now, Changed: now,
			Spec: sandbox.Spec{Template: benchImage, Limits: sandbox.Limits{CPUs: 1, Memory: 1 << 30, Pids: 100}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	reaper := idle.NewReaper(idle.Config{
		Tracker: idle.New(), Sandboxes: healthy{a.manager}, Log: a.log,
		Usage: func(context.Context, string) (sandbox.Usage, error) { asked++; return sandbox.Usage{}, nil },
	})
	var took []time.Duration
	for range benchSweeps {
		began := time.Now()
		if _, err := reaper.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	if asked > 0 {
		t.Errorf("the engine was asked %d times", asked)
	}
	b.add("one sweep of the reaper, 500 registered and asleep", "≤ 50 ms", took, nil)
}

// healthy is a Manager that is not run, over an engine that it takes to be there.
type healthy struct{ *sandbox.Manager }

// EngineHealth implements idle.Sandboxes.
func (healthy) EngineHealth() error { return nil }
