package logs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// talker is a sandbox "a" whose guest tells lines while it is connected.
type talker struct {
	bus *event.Bus[sandbox.Event]

	mu     sync.Mutex
	stream chan string // nil between two connections; closed when one ends
	joined chan struct{}
	asked  int
}

func (f *talker) List(context.Context, sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	return []sandbox.Sandbox{{ID: "a", State: sandbox.Running}}, 1, nil
}

func (f *talker) Subscribe() *event.Subscription[sandbox.Event] { return f.bus.Subscribe() }

func (f *talker) becomes(state sandbox.State, deleted bool) {
	f.bus.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: "a", State: state}, Deleted: deleted})
	synctest.Wait()
}

// connect gives what the guest tells from now on.
func (f *talker) connect() chan<- string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stream = make(chan string)
	close(f.joined)
	f.joined = make(chan struct{})
	return f.stream
}

// follow is a Follow.
func (f *talker) follow(ctx context.Context, _ string, _ time.Time, emit func([]Line) error) error {
	f.mu.Lock()
	f.asked++
	for f.stream == nil {
		joined := f.joined
		f.mu.Unlock()
		select {
		case <-joined:
		case <-ctx.Done():
			return ctx.Err()
		}
		f.mu.Lock()
	}
	stream := f.stream
	f.mu.Unlock()
	for {
		select {
		case text, ok := <-stream:
			if !ok {
				f.mu.Lock()
				f.stream = nil
				f.mu.Unlock()
				return fault.New(fault.Unavailable, "lost")
			}
			if err := emit([]Line{{Text: text, Time: time.Now()}}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// say tells a line, and fails the test when nobody reads it.
func say(t *testing.T, to chan<- string, text string) {
	t.Helper()
	select {
	case to <- text:
	case <-time.After(time.Minute):
		t.Fatalf("nobody reads %q", text)
	}
}

// collecting runs a Collector for a talker, within a bubble.
func collecting(t *testing.T) (*Keeper, *talker) {
	k, _ := running(t, Config{Store: &memory{}})
	f := &talker{bus: event.NewBus[sandbox.Event](64), joined: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	g.Go(func() { _ = NewCollector(k, f, f.follow, slog.New(slog.DiscardHandler)).Run(ctx) })
	t.Cleanup(func() {
		cancel()
		g.Wait()
	})
	synctest.Wait()
	return k, f
}

func wantLines(t *testing.T, k *Keeper, want string) {
	t.Helper()
	synctest.Wait()
	if got := texts(find(t, k, Query{Scope: Only("a")}).Lines); got != want {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestCollector_ReadsOnWhileASandboxEnds(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Stopping, sandbox.Sleeping, sandbox.Starting, sandbox.Deleting} {
		synctest.Test(t, func(t *testing.T) {
			k, f := collecting(t)
			said := f.connect()
			say(t, said, "1")
			f.becomes(state, false)
			time.Sleep(5 * time.Second)
			say(t, said, "2")
			close(said)
			synctest.Wait()
			<-time.After(lastLines)
			if f.asked != 1 {
				t.Errorf("%s: asked %d times", state, f.asked)
			}
			f.becomes(sandbox.Running, false)
			said = f.connect()
			say(t, said, "3")
			wantLines(t, k, "3,2,1")
		})
	}
}

// TestCollector_ASandboxThatDoesNotEndIsCutOff has one that writes on and on, and one that is not connected at that moment.
func TestCollector_ASandboxThatDoesNotEndIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, f := collecting(t)
		said := f.connect()
		f.becomes(sandbox.Stopping, false)
		time.Sleep(lastLines - time.Millisecond)
		say(t, said, "1")
		time.Sleep(2 * time.Millisecond)
		select {
		case said <- "2":
			t.Error("it is still read")
		case <-time.After(time.Second):
		}
		f.becomes(sandbox.Running, false)
		say(t, said, "3")
		close(said)
		<-time.After(firstPause / 2) // before it is asked again
		f.becomes(sandbox.Stopping, false)
		said = f.connect()
		say(t, said, "4")
		close(said)
		wantLines(t, k, "4,3,1")
	})
}

func TestCollector_LateLinesOfADeletedSandboxAreDeletedOrKeptWithTheOthers(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, f := collecting(t)
				if keep {
					if err := k.Keep(t.Context(), Kept{Sandbox: "a"}); err != nil {
						t.Fatal(err)
					}
				}
				said := f.connect()
				say(t, said, "1")
				f.becomes(sandbox.Deleting, false)
				say(t, said, "2")
				f.becomes(sandbox.Deleting, true)
				say(t, said, "3")
				close(said)
				want := ""
				if keep {
					want = "3,2,1"
				}
				wantLines(t, k, want)
				<-time.After(time.Minute)
				wantLines(t, k, want)
			})
		})
	}
}

func TestCollector_ALogThatIsDeletedWhileItsLastLinesComeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, f := collecting(t)
		if err := k.Keep(t.Context(), Kept{Sandbox: "a"}); err != nil {
			t.Fatal(err)
		}
		said := f.connect()
		say(t, said, "1")
		f.becomes(sandbox.Deleting, true)
		if err := k.Unkeep(t.Context(), "a"); err != nil { // as Delete does in a Store
			t.Fatal(err)
		}
		if err := k.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		say(t, said, "2")
		close(said)
		<-time.After(time.Minute)
		wantLines(t, k, "")
	})
}
