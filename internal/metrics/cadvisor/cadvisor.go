// Package cadvisor reads the usage of sandboxes from a cAdvisor that runs beside their engine.
//
// It asks by HTTP, once for all containers, and takes what cAdvisor measured last. It neither starts cAdvisor nor keeps
// figures, and it knows the containers of one instance only, by their names.
//
// Invariant: whatever answers at the address, a call ends in time and takes a bounded amount of memory, and an answer that is
// broken off or not understood gives no figures at all.
package cadvisor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	v2 "github.com/google/cadvisor/info/v2"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
)

const (
	callLimit      = 5 * time.Second
	answerLimit    = 64 << 20 // bytes
	containerLimit = 1 << 20  // bytes of one container; most take 4 KB, and 20 KB on a host with many cores and disks
	headerLimit    = 64 << 10 // bytes
	idleLimit      = time.Minute
)

// Source asks one cAdvisor. It implements metrics.Source.
type Source struct {
	base   *url.URL
	prefix string // of the containers' names
	client *http.Client
	limit  time.Duration // of a call
	most   int           // bytes of an answer
}

// New gives a source that asks the cAdvisor at address for the containers of instance. An address that cannot be one is an
// Invalid fault of the field "cadvisor".
func New(address, instance string) (*Source, error) {
	base, err := url.Parse(address)
	switch {
	case err != nil, base.Scheme != "http" && base.Scheme != "https", base.Hostname() == "",
		base.RawQuery != "" || base.ForceQuery || base.Fragment != "":
		return nil, fault.Field("cadvisor", "--cadvisor must be the address of a cAdvisor, such as http://127.0.0.1:8081.")
	}
	return &Source{base: base, prefix: "sandboxd-" + instance + "-", limit: callLimit, most: answerLimit, client: &http.Client{
		// No proxy: cAdvisor is on the engine's host.
		Transport:     &http.Transport{IdleConnTimeout: idleLimit, MaxResponseHeaderBytes: headerLimit, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Address gives the address that is asked, without a password.
func (s *Source) Address() string { return s.base.Redacted() }

// Version gives the version of the cAdvisor that answers. Kinds: Unavailable, Timeout.
func (s *Source) Version(ctx context.Context) (string, error) {
	version := ""
	err := s.ask(ctx, "version", nil, func(body *bounded) error { return json.NewDecoder(body).Decode(&version) })
	return version, err
}

// Read implements metrics.Source. Each reading has the time at which cAdvisor took it, which may be some seconds ago, and the
// same in two calls.
func (s *Source) Read(ctx context.Context, ids []string) (map[string]metrics.Reading, error) {
	wanted := make(map[string]string, len(ids)) // ids by name
	for _, id := range ids {
		wanted[s.prefix+id] = id
	}
	out := make(map[string]metrics.Reading, len(ids))
	all := url.Values{"type": {v2.TypeDocker}, "recursive": {"true"}, "count": {"1"}}
	err := s.ask(ctx, "stats/", all, func(body *bounded) error {
		return eachContainer(body, func(c v2.ContainerInfo) {
			id, ours := idOf(c.Spec.Aliases, wanted)
			if !ours {
				return
			}
			// Of a container that was just replaced by one of the same name, both may be told.
			if now, ok := newReading(c); ok && now.Time.After(out[id].Time) {
				out[id] = now
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// idOf gives the sandbox that one of a container's names belongs to. Names suffice: two containers never have the same, and
// cAdvisor may be told to keep no labels.
func idOf(names []string, wanted map[string]string) (id string, ours bool) {
	for _, name := range names {
		if id, ours := wanted[name]; ours {
			return id, true
		}
	}
	return "", false
}

// ask makes a call, and gives its answer to read, all within the limits.
func (s *Source) ask(ctx context.Context, path string, query url.Values, read func(body *bounded) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	at := s.base.JoinPath("api/v2.1", path)
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "cAdvisor at %s cannot be asked.", s.Address())
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return s.classify(err, "does not answer")
	}
	defer answer.Body.Close()
	switch code := answer.StatusCode; {
	case code >= 300 && code < 400:
		return fault.New(fault.Unavailable, "cAdvisor at %s answers that it is elsewhere (status %d). Give its own address.", s.Address(), code)
	case code != http.StatusOK:
		return fault.New(fault.Unavailable, "cAdvisor at %s answers with an error (status %d).", s.Address(), code)
	}
	if err := read(&bounded{from: answer.Body, left: s.most, part: containerLimit}); err != nil {
		return s.classify(err, "gives an answer that is not understood")
	}
	return nil
}

// classify gives a failed call its kind.
func (s *Source) classify(err error, what string) error {
	var network net.Error
	switch {
	case errors.Is(err, errTooLong):
		return fault.Wrap(err, fault.Unavailable, "cAdvisor at %s gives an answer that is far too long.", s.Address())
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fault.Wrap(err, fault.Timeout, "cAdvisor at %s takes too long to answer.", s.Address())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Wrap(err, fault.Unavailable, "cAdvisor at %s broke its answer off.", s.Address())
	}
	return fault.Wrap(err, fault.Unavailable, "cAdvisor at %s %s.", s.Address(), what)
}

var errTooLong = errors.New("the answer is too long")

// bounded reads so many bytes and then fails, so that what is cut off is never taken for a whole answer.
type bounded struct {
	from io.Reader
	left int // bytes of the whole
	part int // bytes until next is called
}

func (b *bounded) Read(p []byte) (int, error) {
	most := min(b.left, b.part, len(p))
	if most == 0 && len(p) > 0 {
		return 0, errTooLong
	}
	n, err := b.from.Read(p[:most])
	b.left -= n
	b.part -= n
	return n, err
}

// next begins another part.
func (b *bounded) next() { b.part = containerLimit }

// eachContainer gives the containers of an answer one by one, so that only one is in memory.
func eachContainer(body *bounded, see func(v2.ContainerInfo)) error {
	in := json.NewDecoder(body)
	if first, err := in.Token(); err != nil || first != json.Delim('{') {
		return errors.Join(err, errors.New("it is no map of containers"))
	}
	for in.More() {
		if _, err := in.Token(); err != nil { // its cgroup
			return err
		}
		var c v2.ContainerInfo
		if err := in.Decode(&c); err != nil {
			return err
		}
		see(c)
		body.next()
	}
	_, err := in.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// newReading gives the newest sample of a container; false when it has none that tells anything.
func newReading(c v2.ContainerInfo) (r metrics.Reading, ok bool) {
	for _, s := range c.Stats {
		// A sample without one of these would look like a sandbox that has begun anew.
		if s == nil || s.Cpu == nil || s.Memory == nil || !s.Timestamp.After(r.Time) {
			continue
		}
		r, ok = metrics.Reading{Usage: newUsage(s), Time: s.Timestamp.UTC()}, true
	}
	if limit := c.Spec.Memory.Limit; c.Spec.HasMemory && limit < noLimit {
		r.MemoryLimit = int64(limit)
	}
	return r, ok
}

// noLimit is above any memory limit that means one.
const noLimit = 1 << 60

func newUsage(s *v2.ContainerStats) metrics.Usage {
	u := metrics.Usage{
		CPU: time.Duration(add(0, s.Cpu.Usage.Total)), Throttled: time.Duration(add(0, s.Cpu.CFS.ThrottledTime)),
		Memory: add(0, s.Memory.WorkingSet), Cache: add(0, s.Memory.Cache),
	}
	if p := s.Processes; p != nil {
		u.Processes = add(0, max(p.ThreadsCurrent, p.ProcessCount))
	}
	if s.Network != nil {
		for _, i := range s.Network.Interfaces {
			if i.Name != "lo" {
				u.NetworkRx = add(u.NetworkRx, i.RxBytes)
				u.NetworkTx = add(u.NetworkTx, i.TxBytes)
			}
		}
	}
	if s.DiskIo != nil {
		for _, disk := range s.DiskIo.IoServiceBytes {
			for what, n := range disk.Stats {
				switch strings.ToLower(what) { // there are totals beside these
				case "read":
					u.DiskRead = add(u.DiskRead, n)
				case "write":
					u.DiskWrite = add(u.DiskWrite, n)
				}
			}
		}
	}
	return u
}

// add sums without passing the end of the range, whatever is told.
func add(sum int64, n uint64) int64 { return min(sum+int64(min(n, mostCounted)), mostCounted) }

// mostCounted is above any counter that is true.
const mostCounted = 1 << 60
