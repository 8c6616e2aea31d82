package main

import (
	"math"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"sandboxd/internal/agent"
)

func TestTurnLimits_AreThoseOfTheFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want agent.Limits
	}{
		{nil, agent.Limits{Steps: 200, Time: 4 * time.Hour}},
		{[]string{"--turn-steps=5", "--turn-tokens=1000", "--turn-dollars=2.5", "--turn-time=10m"}, agent.Limits{Steps: 5, Tokens: 1000, Cost: 2_500_000, Time: 10 * time.Minute}},
		{[]string{"--turn-steps=0", "--turn-time=0"}, agent.Limits{Steps: math.MaxInt, Time: noEnd}},
	} {
		var config Config
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		config.turnFlags(f)
		if err := f.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if got := config.turnLimits(); got != c.want || config.checkTurns() != nil {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
}
