package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// control is a Service with what it works on.
type control struct {
	*gateway.Service
	store  *gatewaytest.Store
	log    *syncBuffer
	config gateway.Config

	mu  sync.Mutex
	now time.Time
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// saturday is when the clock of a control begins.
var saturday = time.Date(2026, 11, 28, 22, 30, 0, 0, time.UTC)

func newControl(t *testing.T, edits ...func(*gateway.Config)) *control {
	t.Helper()
	c := &control{store: gatewaytest.NewStore(), log: &syncBuffer{}, now: saturday}
	c.config = gateway.Config{Store: c.store, Sealer: newKey(t), Log: slog.New(slog.NewTextHandler(c.log, nil)), Now: c.clock}
	for _, edit := range edits {
		edit(&c.config)
	}
	c.reopen(t)
	return c
}

// prefixSealer seals by putting a secret and the purpose in front; which is enough to see whether they are the right ones.
type prefixSealer struct{ secret string }

func newKey(t *testing.T) gateway.Sealer { return prefixSealer{t.Name()} }

func (s prefixSealer) Seal(purpose string, text []byte) ([]byte, error) {
	out := []byte(s.secret + "|" + purpose + "|")
	for _, b := range text {
		out = append(out, b^0x55)
	}
	return out, nil
}

func (s prefixSealer) Open(purpose string, sealed []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(sealed, []byte(s.secret+"|"+purpose+"|"))
	if !ok {
		return nil, fault.New(fault.Invalid, "The secret was not sealed with this key.")
	}
	for i := range rest {
		rest[i] ^= 0x55
	}
	return rest, nil
}

func (c *control) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *control) setClock(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// reopen starts the service anew.
func (c *control) reopen(t *testing.T) {
	t.Helper()
	s, err := gateway.Open(t.Context(), c.config)
	if err != nil {
		t.Fatal(err)
	}
	c.Service = s
}

// running has Run work until the function that it gives is called, which waits for it.
func (c *control) running(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	end = sync.OnceFunc(func() {
		cancel()
		run.Wait()
	})
	t.Cleanup(end)
	return end
}

// provide adds a provider with a key.
func (c *control) provide(t *testing.T, p gateway.Provider, key string) gateway.Provider {
	t.Helper()
	got, err := c.SetProvider(t.Context(), p, &key)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func cloud(owner string) gateway.Provider {
	return gateway.Provider{Owner: owner, Name: "cloud", Kind: gateway.OpenAI, BaseURL: "https://api.example.com/v1", Models: []string{"big", "small"}}
}

// wantFault checks the kind of an error, and what its sentence says.
func wantFault(t *testing.T, what string, err error, kind fault.Kind, says string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.Message(err), says) {
		t.Errorf("%s: %v of kind %s, want %s with %q", what, err, fault.KindOf(err), kind, says)
	}
}

// wantField checks that an error is about a field.
func wantField(t *testing.T, what string, err error, field string) {
	t.Helper()
	if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != field {
		t.Errorf("%s: %v about %q, want one about %q", what, err, fault.FieldOf(err), field)
	}
}
