package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandboxd/views"
)

// The ways to repeat that the form offers.
const (
	everyHour  = "hour"
	everyDay   = "day"
	everyWeek  = "week"
	everyMonth = "month"
	byCron     = "cron"
)

// plan is a cron expression as the form has it.
type plan struct {
	every, at, weekday string // at: "03:30"; weekday: "0" to "6", from Sunday
	cron               string // of byCron
}

// firstPlan is what the form of a new schedule begins with.
var firstPlan = plan{every: everyDay, at: "03:30", weekday: "0"}

var everyChoices = []views.Option{{Value: everyHour, Text: "Every hour"}, {Value: everyDay, Text: "Every day"}, {Value: everyWeek, Text: "Every week"},
	{Value: everyMonth, Text: "Every month, on the 1st"}, {Value: byCron, Text: "Custom (cron)"}}

// weekdayChoices begins with Monday.
func weekdayChoices() (list []views.Option) {
	for i := range 7 {
		day := time.Weekday((i + 1) % 7)
		list = append(list, views.Option{Value: strconv.Itoa(int(day)), Text: day.String()})
	}
	return list
}

// planOf reads a cron expression.
func planOf(cron string) plan {
	p := firstPlan
	p.cron = cron
	switch cron {
	case "@hourly":
		cron = "0 * * * *"
	case "@daily":
		cron = "0 0 * * *"
	case "@weekly":
		cron = "0 0 * * 0"
	case "@monthly":
		cron = "0 0 1 * *"
	}
	f := strings.Fields(cron)
	p.every = byCron
	if len(f) != 5 || f[3] != "*" {
		return p
	}
	if cron == "0 * * * *" {
		p.every = everyHour
		return p
	}
	minute, err := strconv.Atoi(f[0])
	hour, err2 := strconv.Atoi(f[1])
	if err != nil || err2 != nil {
		return p
	}
	at := fmt.Sprintf("%02d:%02d", hour, minute)
	switch weekday, err := strconv.Atoi(f[4]); {
	case f[2] == "*" && f[4] == "*":
		p.every, p.at = everyDay, at
	case f[2] == "*" && err == nil && weekday >= 0 && weekday < 7:
		p.every, p.at, p.weekday = everyWeek, at, f[4]
	case f[2] == "1" && f[4] == "*":
		p.every, p.at = everyMonth, at
	}
	return p
}

// expression gives the plan as a cron expression; what makes no sense in it makes none there.
func (p plan) expression() string {
	clock, err := time.Parse("15:04", p.at)
	at := fmt.Sprintf("%d %d", clock.Minute(), clock.Hour())
	if err != nil {
		at = "? ?"
	}
	switch p.every {
	case everyHour:
		return "0 * * * *"
	case everyDay:
		return at + " * * *"
	case everyWeek:
		return at + " * * " + p.weekday
	case everyMonth:
		return at + " 1 * *"
	}
	return p.cron
}

// words says when it is.
func (p plan) words() string {
	switch p.every {
	case everyHour:
		return "Every hour"
	case everyDay:
		return "Every day at " + p.at
	case everyWeek:
		day, _ := strconv.Atoi(p.weekday)
		return "Every week on " + time.Weekday(day).String() + " at " + p.at
	case everyMonth:
		return "Every month on the 1st at " + p.at
	}
	return "Cron " + p.cron
}
