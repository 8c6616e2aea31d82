package update

import (
	"context"
	"fmt"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// Bounds of the check of a sandbox after its update.
const (
	healthLimit = 90 * time.Second       // for all its services to work
	lookLimit   = 5 * time.Second        // one question to the guest
	lookPause   = 500 * time.Millisecond // between two
	steady      = 3 * time.Second        // for which they must have worked
	mostEnds    = 4                      // after which a service that ends by itself is given up
)

// services asks the guest of a running sandbox how its services are; nil when it does not run or does not say.
func (s *Service) services(box sandbox.Sandbox) map[string]wire.ServiceStatus {
	if box.State != sandbox.Running {
		return nil
	}
	found, err := s.ask(s.life, box.ID)
	if err != nil {
		s.c.Log.Debug("services of a sandbox before its update", "sandbox", box.Name, "error", err)
	}
	return found
}

func (s *Service) ask(ctx context.Context, id string) (map[string]wire.ServiceStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	guest, err := s.c.Guests(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := guest.Services(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]wire.ServiceStatus, len(all))
	for _, one := range all {
		found[one.Name] = one
	}
	return found, nil
}

// checkup looks whether a sandbox works after its update.
type checkup struct {
	*Service
	before map[string]wire.ServiceStatus // nil when it did not run
	began  time.Time
	log    []string // of what does not work
}

// check waits until all services of a sandbox work that worked before, for as long as steady. Those of a sandbox that did not run are all
// that start with it.
func (c *checkup) check(ctx context.Context, box sandbox.Sandbox) error {
	waiting, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	wanted := c.wanted(box)
	var since time.Time // since when they work
	var bad badService
	for {
		found, err := c.ask(waiting, box.ID)
		switch {
		case waiting.Err() != nil:
		case err != nil:
			bad, since = badService{why: fault.Message(err)}, time.Time{}
		default:
			if bad = firstBad(wanted, found); bad.why != "" {
				since = time.Time{}
			} else if since.IsZero() {
				since = time.Now()
			}
			if !since.IsZero() && (len(wanted) == 0 || time.Since(since) >= steady) {
				return nil
			}
		}
		if bad.lost || waiting.Err() != nil {
			return c.fail(ctx, box, bad)
		}
		select {
		case <-time.After(lookPause):
		case <-waiting.Done():
		}
	}
}

// badService is a service that does not work.
type badService struct {
	name string // "" when it is about the whole sandbox
	why  string // "" when there is none
	lost bool   // to wait longer is of no use
}

// wanted gives the services that must work.
func (c *checkup) wanted(box sandbox.Sandbox) (list []catalog.Service) {
	for _, one := range c.c.Sandboxes.Services(box) {
		was, known := c.before[one.Name]
		worked := c.before == nil || known && was.State == wire.ServiceRunning && was.Health != wire.HealthUnhealthy
		if one.Autostart && worked {
			if c.before != nil && was.Health != wire.HealthHealthy {
				one.Health = nil // it runs, and more was not known before
			}
			list = append(list, one)
		}
	}
	return list
}

// firstBad gives the first service that does not work.
func firstBad(wanted []catalog.Service, found map[string]wire.ServiceStatus) badService {
	for _, one := range wanted {
		is, known := found[one.Name]
		switch {
		case !known || is.State == wire.ServiceStopped:
			return badService{name: one.Name, why: orElse(is.Problem, "It does not run.")}
		case is.State == wire.ServiceWaiting:
			why := orElse(is.Problem, fmt.Sprintf("It ends by itself (exit code %d).", is.ExitCode))
			return badService{one.Name, why, is.Restarts >= mostEnds}
		case is.Health == wire.HealthUnhealthy, one.Health != nil && is.Health != wire.HealthHealthy:
			return badService{name: one.Name, why: orElse(is.Problem, "It is not healthy.")}
		}
	}
	return badService{}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// fail says what does not work, and keeps the end of its log.
func (c *checkup) fail(ctx context.Context, box sandbox.Sandbox, bad badService) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.log = c.c.LastLines(ctx, box.ID, bad.name, c.began, logLines)
	if bad.name == "" {
		return fault.New(fault.Unavailable, "The program inside it does not answer on the new image: %s", bad.why)
	}
	return fault.New(fault.Unavailable, "The service %s does not work on the new image: %s", bad.name, bad.why)
}
