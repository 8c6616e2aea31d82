package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/publicaddr"
	"sandboxd/internal/text"
)

// Bounds of a provider's list of models.
const (
	checkLimit = 30 * time.Second
	maxAnswer  = 8 << 20
	maxNames   = 2000
)

// CheckProvider asks a provider for the names of its models, by name. Kinds: NotFound, Invalid with a field (what was entered is wrong),
// Unavailable (it cannot be reached, or does not answer as its kind does), Timeout.
func (s *Service) CheckProvider(ctx context.Context, owner, name string) ([]string, error) {
	p, err := s.table().provider(owner, name)
	if err != nil {
		return nil, err
	}
	if p.problem != nil {
		return nil, p.problem
	}
	limit := checkLimit
	if p.isInside() {
		limit += wakeLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.listURL(), nil)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The address of the provider cannot be used.")
	}
	p.authorize(r.Header)
	way := s.wayTo(ctx, p)
	p.mark(r.Header)
	defer way.CloseIdleConnections()
	answer, err := way.RoundTrip(r)
	if err != nil {
		return nil, p.unreached(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, p.refused(answer)
	}
	names, err := modelNames(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The provider's answer is no list of models. Check its kind and address.")
	}
	return names, nil
}

// wayTo gives a way to the provider that follows no redirect: a key is sent to the provider's own address alone.
func (s *Service) wayTo(ctx context.Context, c configured) *http.Transport {
	switch {
	case c.isInside():
		return s.wayInside(ctx, c.Provider)
	case c.Owner != "":
		return newUsersTransport(s.c.Private)
	}
	return newTransport(nil)
}

// listURL gives where a provider lists its models.
func (c configured) listURL() string {
	switch c.Kind {
	case Anthropic:
		return c.endpoint("/v1/models") + "?limit=1000"
	case Gemini:
		return c.endpoint("/v1beta/models") + "?pageSize=1000"
	case Ollama:
		return c.endpoint("/api/tags")
	default:
		return c.endpoint("/v1/models")
	}
}

// unreached says why there was no answer.
func (c configured) unreached(err error) error {
	if c.isInside() {
		p := c.missedInside(err)
		return fault.Wrap(err, p.kind(), "%s", p.message)
	}
	if errors.Is(err, publicaddr.ErrPrivate) {
		return fault.Field("base_url", privateMessage)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(err, fault.Timeout, "The provider %s did not answer within %s.", c.Name, checkLimit)
	}
	return fault.Wrap(err, fault.Unavailable, "The provider %s cannot be reached: %s. Check its address, and that its server runs.", c.Name, cause(err))
}

// refused says what the answer means. The body of an answer is not shown: some repeat the key.
func (c configured) refused(answer *http.Response) error {
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if c.key == "" {
			return fault.Field("key", "The provider needs a key.")
		}
		return fault.Field("key", "The provider does not accept the key.")
	case c.isInside() && (status == http.StatusNotFound || status >= 300 && status < 400):
		return fault.Field("port", "There is no list of models at port %d of %s (status %d). Check the port and the kind.", c.Inside.Port, c.Inside.Name, status)
	case status == http.StatusNotFound || status >= 300 && status < 400:
		return fault.Field("base_url", "There is no list of models at this address (status %d). Check the address and the kind.", status)
	default:
		return fault.New(fault.Unavailable, "The provider %s answers with status %d. Try again later.", c.Name, status)
	}
}

// modelNames reads a list of models in the form of any kind.
func modelNames(from io.Reader) ([]string, error) {
	type model struct{ ID, Name string }
	var list struct{ Data, Models *[maxNames]model } // decoding drops further ones
	if err := json.NewDecoder(from).Decode(&list); err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	var names []string
	for _, models := range []*[maxNames]model{list.Data, list.Models} {
		if models == nil {
			continue
		}
		for _, m := range models {
			name := m.ID
			if name == "" {
				name = strings.TrimPrefix(m.Name, "models/")
			}
			if name != "" && len(name) <= maxModel && !text.Unprintable(name) && len(names) < maxNames {
				names = append(names, name)
			}
		}
	}
	if list.Data == nil && list.Models == nil {
		return nil, errors.New("no list in it")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
