package web

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/gateway/gatewaytest"
)

func TestModelsFromOutside_ARevokedTokenEndsItsStream(t *testing.T) {
	o := newOutside(t)
	o.provider.Play(gatewaytest.Script{Endless: true, Delay: 10 * time.Millisecond})
	secret, lent, err := o.accounts.CreateToken(t.Context(), o.ids["ada"], auth.NewToken{Name: "lent", Models: true})
	if err != nil {
		t.Fatal(err)
	}
	s := o.serve()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/models/v1/chat/completions", strings.NewReader(strings.Replace(chatBody, `"messages"`, `"stream":true,"messages"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	got, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	lines := bufio.NewReader(got.Body)
	if first, err := lines.ReadString('\n'); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%d, %q, %v", got.StatusCode, first, err)
	}
	if err := o.accounts.RevokeToken(t.Context(), o.ids["ada"], lent.ID); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines) // which would never end
	if err != nil || !strings.Contains(string(rest), "not valid") {
		t.Errorf("%.500q, %v", rest, err)
	}
}
