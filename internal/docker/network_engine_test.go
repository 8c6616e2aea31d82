//go:build engine

package docker

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/network"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func addressOf(t *testing.T, e *Engine, id string) netip.Addr {
	t.Helper()
	found, err := e.client.Load().ContainerInspect(t.Context(), e.resource(id))
	if err != nil {
		t.Fatal(err)
	}
	n := found.NetworkSettings.Networks[e.network.name]
	if n == nil {
		t.Fatalf("%s is not on the network: %v", id, found.NetworkSettings.Networks)
	}
	return netip.MustParseAddr(n.IPAMConfig.IPv4Address)
}

func reopen(t *testing.T, e *Engine) *Engine {
	t.Helper()
	again, err := Open(t.Context(), e.c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	return again
}

func TestNetwork_AddressStaysWithTheSandbox(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	addr := addressOf(t, e, b.ID)
	if err := e.Stop(t.Context(), b.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, e)
	c := running(t, again, "patient")
	if got := addressOf(t, again, c.ID); got == addr {
		t.Errorf("the address %s of a stopped sandbox was given away", got)
	}
	if err := again.Start(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if got := addressOf(t, again, b.ID); got != addr {
		t.Errorf("its address was %s and is %s", addr, got)
	}
}

// As by "docker network disconnect", while it runs, is frozen, or does not run.
func TestNetwork_WhatWasTakenOffItIsPutBackAtTheNextLook(t *testing.T) {
	e := openTest(t)
	for what, do := range map[string]func(id string) error{
		"running": func(string) error { return nil },
		"frozen":  func(id string) error { return e.client.Load().ContainerPause(t.Context(), e.resource(id)) },
		"stopped": func(id string) error { return e.Stop(t.Context(), id, time.Second) },
	} {
		b := running(t, e, "patient")
		addr := addressOf(t, e, b.ID)
		if err := do(b.ID); err != nil {
			t.Fatal(err)
		}
		if err := e.client.Load().NetworkDisconnect(t.Context(), e.network.name, e.resource(b.ID), true); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := e.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := addressOf(t, e, b.ID); got != addr {
			t.Errorf("%s: its address was %s and is %s", what, addr, got)
		}
	}
}

func TestNetwork_GoesWithTheLastAndComesBack(t *testing.T) {
	e := openTest(t)
	for range 3 {
		b := running(t, e, "patient")
		if err := e.Remove(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
		if left := leftovers(t, e); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	}
}

// A network that lingers serves the next create; it goes after its time, with Close, and after a crash as well.
func TestNetwork_LingersAndGoesAllTheSame(t *testing.T) {
	e := openTest(t, func(c *Config) { c.NetworkLinger = time.Hour })
	b := running(t, e, "patient")
	if err := e.Remove(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, e); len(left) != 1 {
		t.Fatalf("left is %v, want the network alone", left)
	}
	// As a crash leaves it: e does not know that another has been opened.
	c := e.c
	c.NetworkLinger = time.Millisecond
	again, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	again.running.Wait()
	if left := leftovers(t, e); len(left) != 0 {
		t.Errorf("left is %v", left)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	e.network.forget()
	b = running(t, e, "patient")
	if err := e.Remove(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, e); len(left) != 0 {
		t.Errorf("Close has left %v", left)
	}
}

// Creates and removes of the last sandbox meet: the network may go and come, but no create fails of it.
func TestNetwork_CreateMeetsTheRemoveOfTheLast(t *testing.T) {
	e := openTest(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 4 {
				b := testBox(t, "patient")
				err := e.Create(t.Context(), b)
				if err == nil {
					err = e.Start(t.Context(), b.ID)
				}
				if err != nil {
					t.Error(err)
				}
				if err := e.Remove(t.Context(), b.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	nothingLeft(t, e)
}

// The networks are pruned while all sandboxes are stopped. The next start puts the sandbox back on its network.
func TestNetwork_PrunedIsMadeAgain(t *testing.T) {
	e := openTest(t)
	b, other := running(t, e, "patient"), running(t, e, "patient")
	addr := addressOf(t, e, b.ID)
	for _, id := range []string{b.ID, other.ID} {
		if err := e.Stop(t.Context(), id, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.client.Load().NetworkRemove(t.Context(), e.network.name); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{b.ID, other.ID} {
		if err := e.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if got := addressOf(t, e, b.ID); got != addr {
		t.Errorf("its address was %s and is %s", addr, got)
	}
	if err := e.Stop(t.Context(), b.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(t.Context(), other.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := e.client.Load().NetworkRemove(t.Context(), e.network.name); err != nil {
		t.Fatal(err)
	}
	running(t, e, "patient") // a create finds out as well
}

func TestNetwork_OneThatIsNotOursIsRefused(t *testing.T) {
	e := openTest(t)
	ctx, cli := context.Background(), e.client.Load()
	if _, err := cli.NetworkCreate(ctx, e.network.name, network.CreateOptions{Driver: "bridge"}); err != nil {
		t.Fatal(err)
	}
	err := e.Create(t.Context(), testBox(t, "patient"))
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), e.network.name) {
		t.Errorf("got %v", err)
	}
	if err := e.Remove(t.Context(), sandbox.NewID()); err != nil {
		t.Error(err)
	}
	if err := cli.NetworkRemove(ctx, e.network.name); err != nil {
		t.Errorf("it was removed by us: %v", err)
	}
}

func TestNetwork_ConfiguredSubnetIsUsedOrRefused(t *testing.T) {
	e := openTest(t, func(c *Config) { c.Subnet = "10.212.77.0/24" })
	b := running(t, e, "patient")
	if got := addressOf(t, e, b.ID); !netip.MustParsePrefix("10.212.77.0/24").Contains(got) {
		t.Errorf("got %s", got)
	}
	taken := openTest(t, func(c *Config) { c.Subnet = "10.212.77.0/24" })
	err := taken.Create(t.Context(), testBox(t, "patient"))
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v (%v)", err, fault.KindOf(err))
	}
}

func TestCreate_RefusalShowsTheEnginesWord(t *testing.T) {
	e := openTest(t)
	b := testBox(t, "patient")
	b.LinkPath = "/no/such/folder"
	if err := e.Create(t.Context(), b); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "/no/such/folder") {
		t.Errorf("got %v", err)
	}
	if err := e.Remove(t.Context(), b.ID); err != nil {
		t.Error(err)
	}
	b = testBox(t, "patient")
	if err := e.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(b.LinkPath); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), b.ID); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), b.LinkPath) {
		t.Errorf("got %v (%v)", err, fault.KindOf(err))
	}
}

// The home's volume outlives the container, and a container made anew finds it.
func TestCreate_VolumeIsUsedAgain(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", "echo kept > /home/agent/x"); code != 0 {
		t.Fatal(out)
	}
	if err := e.removeContainer(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if err := e.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if _, out := inside(t, e, b.ID, "0", "cat /home/agent/x"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
}

// While the engine's events are followed, a list remembers; it is as true as one that does not.
func TestList_RemembersOnlyWhatIsStillTrue(t *testing.T) {
	e := openTest(t)
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		e.Watch(ctx, func() { close(ready) }, func(sandbox.Instance) {})
	}()
	defer func() { cancel(); <-over }()
	<-ready
	b := running(t, e, "deaf")
	for range 3 {
		before, err := e.List(t.Context())
		if err != nil || !before[0].Running {
			t.Fatalf("got %+v %v", before, err)
		}
		if again, err := e.List(t.Context()); err != nil || again[0] != before[0] {
			t.Errorf("got %+v after %+v", again, before)
		}
		if err := e.Stop(t.Context(), b.ID, 0); err != nil {
			t.Fatal(err)
		}
		if after, err := e.List(t.Context()); err != nil || after[0].Running || after[0].ExitCode == 0 {
			t.Errorf("got %+v %v", after, err)
		}
		if err := e.Start(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
		if after, err := e.List(t.Context()); err != nil || !after[0].Started.After(before[0].Started) {
			t.Errorf("got %+v after %+v, %v", after, before, err)
		}
	}
}
