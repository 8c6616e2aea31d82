package web

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// keepModels makes a gateway without providers.
func keepModels(t *testing.T, log *slog.Logger, now func() time.Time) *gateway.Service {
	t.Helper()
	s, err := gateway.Open(t.Context(), gateway.Config{Store: gatewaytest.NewStore(), Sealer: reverser{}, Private: true, Prices: "/data/prices.json", Log: log, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reverser is a gateway.Sealer that turns keys around.
type reverser struct{}

func (reverser) Seal(purpose string, text []byte) ([]byte, error) {
	sealed := bytes.Clone(text)
	for i, j := 0, len(sealed)-1; i < j; i, j = i+1, j-1 {
		sealed[i], sealed[j] = sealed[j], sealed[i]
	}
	return append([]byte(purpose+"\x00"), sealed...), nil
}

func (r reverser) Open(purpose string, sealed []byte) ([]byte, error) {
	text, ok := bytes.CutPrefix(sealed, []byte(purpose+"\x00"))
	if !ok {
		return nil, fault.New(fault.Invalid, "This was sealed for something else.")
	}
	turned, err := r.Seal("", text)
	return turned[1:], err
}
