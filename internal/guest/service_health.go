package guest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/wire"
)

// How a service's health is found out.
const (
	healthTimeout = 5 * time.Second // for one look
	healthTries   = 3               // looks that fail in a row until the service is restarted
	healthHeader  = 64 << 10        // of an answer
)

// looker asks services how they are. A new connection each time: an old one would say nothing of whether it listens.
var looker = &http.Transport{
	DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return dialPort(ctx, port)
	},
	DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: healthHeader,
}

// checker looks after one run of a service.
type checker struct {
	service *service
	port    int
	health  wire.Health
	pace    pace
	sick    chan struct{} // closed when the run is to be ended
	healthy atomic.Bool   // it ever was
	over    chan struct{} // closed when no more looks are taken
	cancel  context.CancelFunc
}

// check begins to look after a run; nil when there is nothing to look at.
func (s *service) check(def wire.Service) *checker {
	if def.Health == nil || def.Port == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &checker{service: s, port: def.Port, health: *def.Health, pace: s.pace,
		sick: make(chan struct{}), over: make(chan struct{}), cancel: cancel}
	if c.health.Interval == 0 {
		c.health.Interval = s.pace.look
	}
	go func() {
		defer close(c.over)
		c.run(ctx)
	}()
	return c
}

// alarm is closed when the run is to be ended; nil without checks.
func (c *checker) alarm() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.sick
}

// stop ends the checks and reports whether the run was healthy at any time, which without checks it was.
func (c *checker) stop() bool {
	if c == nil {
		return true
	}
	c.cancel()
	<-c.over
	return c.healthy.Load()
}

// run looks again and again. Until the service was healthy once it may be about to start: it is looked at more often, and
// not being ready is no failure for a while.
func (c *checker) run(ctx context.Context) {
	starting := thaw.NewBudget(c.pace.settle)
	for failed := 0; failed < healthTries; {
		wait := c.health.Interval
		if !c.healthy.Load() {
			wait = min(wait, c.pace.early)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		due := time.Now().Add(healthTimeout)
		wrong := look(ctx, c.port, c.health.Path)
		switch {
		case ctx.Err() != nil:
			return
		case wrong == "":
			failed = 0
			c.healthy.Store(true)
			c.service.mark(wire.HealthHealthy, "")
		case thaw.Frozen(due): // it could not answer
		case c.healthy.Load() || starting.Spent():
			failed++
			c.service.mark(wire.HealthUnhealthy, wrong)
		}
	}
	close(c.sick)
}

// look says in a sentence why a port is not healthy; "" when it is.
func look(ctx context.Context, port int, path string) string {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	number := strconv.Itoa(port)
	if path == "" {
		conn, err := dialPort(ctx, number)
		if err != nil {
			return "Nothing answers on port " + number + "."
		}
		conn.Close()
		return ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+number+path, nil)
	if err != nil {
		return "Its health cannot be asked for: the path is not valid."
	}
	req.Host = "localhost:" + number
	req.Header.Set("User-Agent", "sandboxd-health")
	res, err := looker.RoundTrip(req)
	if err != nil {
		return fmt.Sprintf("GET %s on port %d gives no answer.", path, port)
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 399 {
		return fmt.Sprintf("GET %s on port %d gives status %d.", path, port, res.StatusCode)
	}
	return ""
}

// mark notes the health of a run.
func (s *service) mark(h wire.ServiceHealth, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.State == wire.ServiceRunning {
		s.status.Health, s.status.Problem = h, problem
	}
}
