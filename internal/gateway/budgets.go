package gateway

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/fault"
)

// maxBound keeps sums of bounds and of what is used far from the end of an int64.
const maxBound = 1_000_000_000_000_000

// Budgets gives all, those without a subject first.
func (s *Service) Budgets() []Budget { return slices.Clone(s.table().budgets) }

// SetBudget adds a budget, or changes the one of its scope, subject and period. Kinds: Invalid, with a field; NotFound when its subject is
// gone.
func (s *Service) SetBudget(ctx context.Context, b Budget) error {
	if err := checkBudget(b); err != nil {
		return err
	}
	if err := s.change(ctx, func(ctx context.Context) error { return s.c.Store.PutBudget(ctx, b) }); err != nil {
		return fmt.Errorf("keep budget: %w", err)
	}
	return nil
}

func checkBudget(b Budget) error {
	if err := checkBudgetKey(b.Scope, b.Period); err != nil {
		return err
	}
	for field, bound := range map[string]int64{"requests": b.Requests, "tokens": b.Tokens, "cost": b.Cost} {
		if bound < 0 || bound > maxBound {
			return fault.Field(field, "A bound is between 0, for none, and %d.", int64(maxBound))
		}
	}
	if b.Requests == 0 && b.Tokens == 0 && b.Cost == 0 {
		return fault.Field("requests", "Set at least one bound: of requests, tokens or money.")
	}
	return nil
}

func checkBudgetKey(scope Scope, period Period) error {
	switch {
	case scope != PerUser && scope != PerSandbox:
		return fault.Field("scope", "A budget is for a %s or a %s.", PerUser, PerSandbox)
	case period != Day && period != Month:
		return fault.Field("period", "A budget is for a %s or a %s.", Day, Month)
	}
	return nil
}

// RemoveBudget removes one. Kinds: Invalid, with a field; NotFound.
func (s *Service) RemoveBudget(ctx context.Context, scope Scope, subject string, period Period) error {
	if err := checkBudgetKey(scope, period); err != nil {
		return err
	}
	err := s.change(ctx, func(ctx context.Context) error {
		if _, ok := s.table().budget(scope, subject, period); !ok {
			return fault.New(fault.NotFound, "There is no such budget. It may have been removed.")
		}
		return s.c.Store.DeleteBudget(ctx, scope, subject, period)
	})
	if err != nil {
		return fmt.Errorf("remove budget: %w", err)
	}
	return nil
}

func (t *table) budget(scope Scope, subject string, period Period) (Budget, bool) {
	i := slices.IndexFunc(t.budgets, func(b Budget) bool { return b.Scope == scope && b.Subject == subject && b.Period == period })
	if i < 0 {
		return Budget{}, false
	}
	return t.budgets[i], true
}

// binding gives the budgets that bind a user and a sandbox: each one's own, else the one for all of its scope.
func (t *table) binding(user, sandbox string) []bound {
	var list []bound
	for _, of := range []bound{{Budget{Scope: PerUser}, user}, {Budget{Scope: PerSandbox}, sandbox}} {
		for _, period := range []Period{Day, Month} {
			if of.who == "" {
				continue
			}
			b, ok := t.budget(of.Scope, of.who, period)
			if !ok {
				b, ok = t.budget(of.Scope, "", period)
			}
			if ok {
				list = append(list, bound{b, of.who})
			}
		}
	}
	return list
}

// bound is a budget and whom it binds.
type bound struct {
	Budget
	who string // user or sandbox id
}

// Standing is a budget and what is used of it.
type Standing struct {
	Budget
	Used Usage     // From is when the period began
	Ends time.Time // when it begins anew
}

// Spent reports whether nothing of it is left.
func (s Standing) Spent() bool {
	return s.Requests > 0 && s.Used.Requests >= s.Requests || s.Tokens > 0 && s.Used.Tokens.Total() >= s.Tokens || s.Cost > 0 && s.Used.Cost >= s.Cost
}

// Standing gives each budget that binds a user and a sandbox, either of which may be "".
func (s *Service) Standing(user, sandbox string) []Standing {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	return s.counts.standing(s.table().binding(user, sandbox), s.c.Now())
}

// Spent is why a request is refused whose user or sandbox has used up a budget. It is the cause of a fault of kind Limited.
type Spent struct{ Standing }

// Error implements error.
func (s *Spent) Error() string {
	return fmt.Sprintf("budget of %s %q for a %s is spent", s.Scope, s.Subject, s.Period)
}

// ErrOff is the cause of a refusal while the gateway is turned off. The fault's kind is Forbidden.
var ErrOff = fmt.Errorf("the gateway is turned off")

// admit counts a request, or says why it must not be made: a fault of kind Forbidden with ErrOff, or Limited with *Spent, which says after
// how long a retry can succeed. Each request that was admitted is to be recorded.
func (s *Service) admit(c Caller) error {
	t, now := s.table(), s.c.Now()
	if t.settings.Off {
		return fault.Wrap(ErrOff, fault.Forbidden, "An admin has turned off models for all sandboxes. Ask an admin to turn them on again.")
	}
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	var longest *Standing // of those that are spent
	for _, at := range s.counts.standing(t.binding(c.User, c.Sandbox), now) {
		if at.Spent() && (longest == nil || at.Ends.After(longest.Ends)) {
			longest = &at
		}
	}
	if longest != nil {
		return longest.refusal(now)
	}
	s.counts.add(c.User, c.Sandbox, now, now, Usage{Requests: 1})
	return nil
}

func (s Standing) refusal(now time.Time) error {
	whose := "Your"
	if s.Scope == PerSandbox {
		whose = "This sandbox's"
	}
	wait := s.Ends.Sub(now)
	return &fault.Error{Kind: fault.Limited, Wait: wait, Err: &Spent{s}, Message: fmt.Sprintf(
		"%s budget for models, %s a %s, is spent. It begins anew at %s UTC, in %s. An admin can raise it.",
		whose, s.exhausted(), s.Period, s.Ends.UTC().Format("2006-01-02 15:04"), inWords(wait))}
}

// exhausted names the bound that is reached.
func (s Standing) exhausted() string {
	switch {
	case s.Requests > 0 && s.Used.Requests >= s.Requests:
		return counted(s.Requests, "request")
	case s.Tokens > 0 && s.Used.Tokens.Total() >= s.Tokens:
		return counted(s.Tokens, "token")
	}
	return dollars(s.Cost)
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped writes a number with commas.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// dollars writes millionths of a dollar: in cents, or as precisely as a smaller amount needs.
func dollars(millionths int64) string {
	const million = 1_000_000
	if millionths%10_000 == 0 {
		return fmt.Sprintf("$%s.%02d", grouped(millionths/million), millionths%million/10_000)
	}
	return fmt.Sprintf("$%s.%06d", grouped(millionths/million), millionths%million)
}

func inWords(d time.Duration) string {
	switch minutes := int64((d + time.Minute - 1) / time.Minute); {
	case minutes < 60:
		return counted(max(minutes, 1), "minute")
	case minutes < 48*60:
		return counted((minutes+59)/60, "hour")
	default:
		return counted((minutes+24*60-1)/(24*60), "day")
	}
}
