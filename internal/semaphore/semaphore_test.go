package semaphore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeyed_SoManyAreInAndSoManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k Keyed
		first, err := k.Acquire(t.Context(), "a", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		other, err := k.Acquire(t.Context(), "b", 1, 0)
		if err != nil {
			t.Errorf("another key: %v", err)
		}
		second := make(chan func())
		go func() {
			release, err := k.Acquire(t.Context(), "a", 1, 1)
			if err != nil {
				t.Error(err)
			}
			second <- release
		}()
		synctest.Wait()
		if _, err := k.Acquire(t.Context(), "a", 1, 1); !errors.Is(err, ErrFull) {
			t.Errorf("a third one: %v", err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := k.Acquire(ended, "a", 1, -1); !errors.Is(err, context.Canceled) {
			t.Errorf("who does not wait: %v", err)
		}
		first()
		first() // is of no more effect
		(<-second)()
		other()
		if n := k.Len(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

func TestKeyed_OneAtATimeAndWaitersMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k Keyed
		unlock, err := k.Acquire(t.Context(), "a", 1, -1)
		if err != nil {
			t.Fatal(err)
		}
		other, err := k.Acquire(t.Context(), "b", 1, -1)
		if err != nil {
			t.Fatal(err)
		}
		other()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.Acquire(ctx, "a", 1, -1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		entered := false
		go func() {
			unlock, err := k.Acquire(t.Context(), "a", 1, -1)
			if err != nil {
				t.Error(err)
				return
			}
			entered = true
			unlock()
		}()
		synctest.Wait()
		if entered {
			t.Error("two have the lock")
		}
		unlock()
		synctest.Wait()
		if !entered || k.Len() != 0 {
			t.Errorf("entered %t, %d locks are kept", entered, k.Len())
		}
	})
}
