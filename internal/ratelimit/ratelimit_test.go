package ratelimit

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeyed_ABurstThenOneAfterEachPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := Keyed{Burst: 3, Every: 7 * time.Second}
		take := func(key string, want time.Duration) func() {
			t.Helper()
			wait, giveBack := k.Take(key)
			if wait.Round(time.Millisecond) != want {
				t.Errorf("wait %v, want %v", wait, want)
			}
			return giveBack
		}
		for range 3 {
			take("a", 0)
		}
		take("a", 7*time.Second)
		take("b", 0)
		time.Sleep(2 * time.Second)
		take("a", 5*time.Second)()
		take("a", 5*time.Second) // a refusal counts nothing, and gives nothing back
		time.Sleep(5 * time.Second)
		take("a", 0)
		take("a", 7*time.Second)
		time.Sleep(time.Hour)
		for range 3 {
			take("a", 0)
		}
		take("a", 7*time.Second)
	})
}

func TestKeyed_WhatIsGivenBackWasNeverCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := Keyed{Burst: 2, Every: time.Minute}
		for range 100 {
			wait, giveBack := k.Take("a")
			if wait != 0 {
				t.Fatalf("wait %v", wait)
			}
			time.Sleep(time.Second) // while it is found out
			giveBack()
		}
		_, _ = k.Take("a")
		_, last := k.Take("a")
		if wait, _ := k.Take("a"); wait == 0 {
			t.Error("more than the burst")
		}
		last()
		if wait, _ := k.Take("a"); wait != 0 {
			t.Errorf("wait %v", wait)
		}
	})
}

func TestKeyed_MemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := Keyed{Burst: 1, Every: time.Hour}
		for i := range 2 * maxKeys {
			if wait, _ := k.Take(strconv.Itoa(i)); wait != 0 {
				t.Fatalf("wait %v", wait)
			}
			if wait, _ := k.Take(strconv.Itoa(i)); wait == 0 {
				t.Fatal("the latest was forgotten")
			}
			if len(k.by) > maxKeys {
				t.Fatalf("%d are remembered", len(k.by))
			}
		}
		time.Sleep(time.Hour)
		for i := range maxKeys {
			_, _ = k.Take("new" + strconv.Itoa(i))
		}
		if len(k.by) != maxKeys { // those as good as new went first
			t.Errorf("%d are remembered", len(k.by))
		}
	})
}
