package gatewaytest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// AddCalls implements gateway.Store.
func (s *Store) AddCalls(ctx context.Context, calls []gateway.Call) error {
	return s.within(ctx, func() error {
		for _, c := range calls {
			if c.ID != "" && s.known[c.ID] {
				continue
			}
			s.addUsage(c)
			if c.ID != "" {
				s.known[c.ID], s.calls = true, append(s.calls, c)
			}
		}
		slices.SortFunc(s.calls, func(a, b gateway.Call) int { return strings.Compare(a.ID, b.ID) })
		return nil
	})
}

func (s *Store) addUsage(c gateway.Call) {
	k := usageKey{c.Time.UTC().Truncate(time.Hour), c.User, c.Sandbox, c.Provider, c.Model}
	of := usageKey{hour: k.hour, user: k.user, sandbox: k.sandbox}
	if _, known := s.usage[k]; !c.Answered() || !known && s.rows[of] >= gateway.MaxUsageRows {
		k.model = ""
	}
	u, known := s.usage[k]
	if !known {
		s.rows[of]++
	}
	s.usage[k] = plus(u, gateway.Usage{Label: c.Label, Requests: 1, Failed: failed(c), Tokens: c.Tokens, Cost: c.Cost})
}

func failed(c gateway.Call) int64 {
	if c.Status >= 400 {
		return 1
	}
	return 0
}

// plus adds what was used; the label is the later one.
func plus(a, b gateway.Usage) gateway.Usage {
	a.Label = b.Label
	a.Requests += b.Requests
	a.Failed += b.Failed
	a.Tokens.Input += b.Tokens.Input
	a.Tokens.Output += b.Tokens.Output
	a.Tokens.CacheRead += b.Tokens.CacheRead
	a.Tokens.CacheWrite += b.Tokens.CacheWrite
	a.Cost += b.Cost
	return a
}

// Calls implements gateway.Store.
func (s *Store) Calls(ctx context.Context, q gateway.CallQuery) (list []gateway.Call, err error) {
	err = s.within(ctx, func() error {
		for _, c := range slices.Backward(s.calls) {
			fits := (q.User == "" || c.User == q.User) && (q.Sandbox == "" || c.Sandbox == q.Sandbox || c.Label == q.Sandbox) &&
				(q.Model == "" || c.Asked == q.Model || c.Model == q.Model) && (!q.Failed || c.Status >= 400) && (q.Before == "" || c.ID < q.Before)
			if fits && len(list) < cmp.Or(q.Limit, 100) {
				c.Request, c.Answer = "", ""
				list = append(list, c)
			}
		}
		return nil
	})
	return list, err
}

// Call implements gateway.Store.
func (s *Store) Call(ctx context.Context, id string) (c gateway.Call, err error) {
	err = s.within(ctx, func() error {
		i := slices.IndexFunc(s.calls, func(o gateway.Call) bool { return o.ID == id })
		if i < 0 {
			return fault.New(fault.NotFound, "There is no such call in the log.")
		}
		c = s.calls[i]
		return nil
	})
	return c, err
}

// Usage implements gateway.Store.
func (s *Store) Usage(ctx context.Context, q gateway.UsageQuery) (list []gateway.Usage, err error) {
	err = s.within(ctx, func() error {
		sums := map[gateway.Usage]gateway.Usage{} // by part and key
		for _, k := range slices.SortedFunc(maps.Keys(s.usage), func(a, b usageKey) int { return a.hour.Compare(b.hour) }) {
			if k.hour.Before(q.From) || !k.hour.Before(q.To) || q.User != "" && k.user != q.User || q.Sandbox != "" && k.sandbox != q.Sandbox ||
				q.Served && k.provider == "" {
				continue
			}
			var at gateway.Usage
			if q.Step > 0 {
				at.From = q.From.Add(k.hour.Sub(q.From).Truncate(q.Step)).UTC()
			}
			at.Key = map[string]string{"user": k.user, "sandbox": k.sandbox, "model": k.model, "provider": k.provider}[q.By]
			sums[at] = plus(sums[at], s.usage[k])
		}
		for at, u := range sums {
			u.From, u.Key = at.From, at.Key
			if q.By != "sandbox" || u.Key == "" {
				u.Label = u.Key
			}
			list = append(list, u)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b gateway.Usage) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(b.Tokens.Total(), a.Tokens.Total()), cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Key, b.Key))
	})
	return list, err
}

// SweepCalls implements gateway.Store.
func (s *Store) SweepCalls(ctx context.Context, before, now time.Time) error {
	return s.within(ctx, func() error {
		s.calls = slices.DeleteFunc(s.calls, func(c gateway.Call) bool { return c.Time.Before(before) })
		s.calls = s.calls[max(len(s.calls)-gateway.MaxCalls, 0):]
		kept := 0
		for i := len(s.calls) - 1; i >= 0; i-- {
			if kept += len(s.calls[i].Request) + len(s.calls[i].Answer); kept > gateway.MaxContents {
				s.calls[i].Request, s.calls[i].Answer = "", ""
			}
		}
		maps.DeleteFunc(s.usage, func(k usageKey, _ gateway.Usage) bool {
			return k.hour.Add(time.Hour+gateway.KeepUsage).Compare(now) <= 0
		})
		return nil
	})
}
