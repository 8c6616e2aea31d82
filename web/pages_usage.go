package web

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/views"
)

// usageRange is a stretch of time up to now that the page shows.
type usageRange struct {
	value, text, title string
	span, step         time.Duration
}

// usageRanges are those to choose from; the first is the usual one.
var usageRanges = []usageRange{
	{"24h", "24 h", "the last 24 hours", 24 * time.Hour, time.Hour},
	{"30d", "30 d", "the last 30 days", 30 * 24 * time.Hour, 24 * time.Hour},
}

// readUsageRange reads which one the address names. Kind: Invalid.
func readUsageRange(r *request) (usageRange, error) {
	name := r.query("range")
	if name == "" {
		return usageRanges[0], nil
	}
	at := slices.IndexFunc(usageRanges, func(u usageRange) bool { return u.value == name })
	if at < 0 {
		return usageRange{}, fault.Field("range", "There is no time range %.40q.", name)
	}
	return usageRanges[at], nil
}

// bounds are where the range begins, with whole parts in UTC as usage is counted in, and where its last part ends.
func (u usageRange) bounds(now time.Time) (from, to time.Time) {
	to = now.UTC().Truncate(u.step).Add(u.step)
	return to.Add(-u.span), to
}

// url is an address of a page about usage, of a user's or, with "", of what it shows without one.
func usageURL(path, user string, more ...string) string {
	v := url.Values{}
	if user != "" {
		v.Set("user", user)
	}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			v.Set(more[i], more[i+1])
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// pageUsage shows what was used of models: one's own, and for admins everybody's.
func (s *usageHandlers) pageUsage(ctx context.Context, r *request) (templ.Component, error) {
	shown, err := readUsageRange(r)
	if err != nil {
		return nil, err
	}
	scope, err := s.usageScope(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.ModelUsage{
		Frame: s.frame(r, "Model usage", ""), Notices: s.usageNotices(), Title: shown.title,
		Series: usageURL(usagePath+"/series", r.query("user"), "range", shown.value), Calls: usageURL(callsPath, r.query("user")),
		Ready: len(s.cfg.Models.Offered(r.who.User.ID)) > 0,
	}
	v.Frame.Plots = true
	for _, u := range usageRanges {
		v.Ranges = append(v.Ranges, views.Chip{Text: u.text, Value: u.value, Current: u == shown, URL: usageURL(usagePath, r.query("user"), "range", u.value)})
	}
	if v.User, err = s.userChoice(ctx, r); err != nil {
		return nil, err
	}
	if err := s.fillUsage(ctx, r, &v, shown, scope); err != nil {
		return nil, err
	}
	return views.ModelUsagePage(v), nil
}

// usageNotices are what people must know of the gateway.
func (s *usageHandlers) usageNotices() views.UsageNotices {
	set := s.cfg.Models.Settings()
	return views.UsageNotices{Off: set.Off, Content: set.LogContent}
}

// userChoice is an admin's choice of a user; for others there is none.
func (s *usageHandlers) userChoice(ctx context.Context, r *request) (views.LogChoice, error) {
	if !r.isAdmin() {
		return views.LogChoice{}, nil
	}
	out := views.LogChoice{Field: views.Field{Value: r.query("user")}, Options: []views.Option{{Text: "All users"}}}
	users, err := s.cfg.Accounts.Users(ctx)
	for _, u := range users[:min(len(users), mostChoices)] {
		out.Options = append(out.Options, views.Option{Value: u.Name, Text: u.Name})
	}
	return out, err
}

// fillUsage asks for what was used, and makes it ready to show.
func (s *usageHandlers) fillUsage(ctx context.Context, r *request, v *views.ModelUsage, shown usageRange, scope usageScope) error {
	now := s.cfg.Now()
	_, monthEnds := usageRanges[1].bounds(now)
	long, err := s.cfg.Models.Usage(ctx, scope.query(monthEnds.AddDate(-1, 0, 0), monthEnds, 0, ""))
	if err != nil {
		return err
	}
	if v.None = sumOf(long).Requests == 0; v.None {
		return nil
	}
	if v.Sums, err = s.usageSums(ctx, scope, now); err != nil {
		return err
	}
	from, to := shown.bounds(now)
	tables, err := s.usageTables(ctx, r, scope, from, to)
	if err != nil {
		return err
	}
	v.Tables, v.Unknown, v.Budgets = tables.shown, tables.unknown, s.usageBudgets(scope, tables, now)
	parts, err := s.cfg.Models.Usage(ctx, scope.query(from, to, shown.step, ""))
	for _, u := range slices.Backward(parts) {
		v.Rows = append(v.Rows, views.ModelUsageRow{Time: exactTime(u.From), Figures: usageFigures(u, tables.unpriced)})
	}
	return err
}

// usageSums are what was used today and this month, as budgets count them.
func (s *usageHandlers) usageSums(ctx context.Context, scope usageScope, now time.Time) ([]views.ModelSum, error) {
	y, m, d := now.UTC().Date()
	day, month := time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	var out []views.ModelSum
	for _, of := range []struct {
		title    string
		from, to time.Time
	}{{"Today", day, day.AddDate(0, 0, 1)}, {"This month", month, month.AddDate(0, 1, 0)}} {
		found, err := s.cfg.Models.Usage(ctx, scope.query(of.from, of.to, 0, "model"))
		if err != nil {
			return nil, err
		}
		u := sumOf(found)
		sum := views.ModelSum{Title: of.title, Requests: grouped(u.Requests), Tokens: grouped(u.Tokens.Total()), Cost: usageCost(u, !all(found, s.priced()))}
		if u.Failed > 0 {
			sum.Failed = grouped(u.Failed) + " failed"
		}
		if u.Tokens.Total() > 0 {
			sum.Detail = fmt.Sprintf("%s in, %s out, %s cached", grouped(u.Tokens.Input), grouped(u.Tokens.Output), grouped(cachedOf(u.Tokens)))
		}
		out = append(out, sum)
	}
	return out, nil
}

// sumOf adds usage up.
func sumOf(list []gateway.Usage) (sum gateway.Usage) {
	for _, u := range list {
		sum.Requests += u.Requests
		sum.Failed += u.Failed
		sum.Tokens.Input += u.Tokens.Input
		sum.Tokens.Output += u.Tokens.Output
		sum.Tokens.CacheRead += u.Tokens.CacheRead
		sum.Tokens.CacheWrite += u.Tokens.CacheWrite
		sum.Cost += u.Cost
	}
	return sum
}

func cachedOf(t gateway.Tokens) int64 { return t.CacheRead + t.CacheWrite }

// usageFigures are the columns of a row, as the tables have them. unpriced is as for usageCost.
func usageFigures(u gateway.Usage, unpriced bool) []string {
	return []string{grouped(u.Requests), grouped(u.Failed), grouped(u.Tokens.Input), grouped(u.Tokens.Output), grouped(cachedOf(u.Tokens)), usageCost(u, unpriced)}
}

// usageCost is what use has cost, or why that is not known. unpriced says that it may be of models whose price is not known.
func usageCost(u gateway.Usage, unpriced bool) string {
	if unpriced && u.Cost == 0 && u.Tokens.Total() > 0 {
		return noPrice
	}
	return costText(u.Cost)
}

// costText writes millionths of a dollar: in cents, or with the digits that a smaller amount needs.
func costText(cost int64) string {
	const cent, dollar = 10_000, 1_000_000
	switch {
	case cost == 0 || cost >= dollar:
		cents := (cost + cent/2) / cent
		return "$" + grouped(cents/100) + fmt.Sprintf(".%02d", cents%100)
	case cost >= cent:
		return "$" + strconv.FormatFloat(float64(cost)/dollar, 'f', 3, 64)
	default:
		return "$" + strings.TrimRight(strconv.FormatFloat(float64(cost)/dollar, 'f', 6, 64), "0")
	}
}

// noPrice stands where the price of a model is not known.
const noPrice = "price not known"
