package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// sender sends spans, and says once when that fails and once when it works again.
type sender struct {
	client   *otlptrace.Exporter
	endpoint string
	log      *slog.Logger
	failing  atomic.Bool
}

// ExportSpans implements sdk.SpanExporter. A failure is logged here, and not given on to the library's own log.
func (s *sender) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := s.client.ExportSpans(ctx, spans)
	switch failing := err != nil; {
	case failing == s.failing.Swap(failing):
	case failing:
		s.log.Warn("traces cannot be sent and are dropped", "to", s.endpoint, "error", err)
	default:
		s.log.Info("traces can be sent again", "to", s.endpoint)
	}
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (s *sender) Shutdown(ctx context.Context) error { return s.client.Shutdown(ctx) }

// collector is the far end. The library's own client for it brings all of gRPC along.
type collector struct {
	endpoint string
	http     *http.Client
}

// newClient makes a client that follows no redirect: what is sent goes to the configured address or nowhere.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       sendLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Start implements otlptrace.Client.
func (c *collector) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *collector) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// maxAnswer bounds what is read of a collector's answer, so that its connection can be used again.
const maxAnswer = 64 << 10

// UploadTraces implements otlptrace.Client. TracesData has the same form on the wire as the request that OTLP asks for.
func (c *collector) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return fmt.Errorf("read the answer to traces: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("send traces: the collector answers %d", resp.StatusCode)
	}
	return nil
}
