//go:build bench

// Package benchtest writes what is measured to bench.json, for all packages of a run.
//
// It does not measure. It judges a figure by its goal, and fails nothing for a goal that is missed: the machine may be to blame.
//
// Invariant: what was recorded stays when a later case fails or takes the run down.
package benchtest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"
)

// File is bench.json, from a package in the root of the tree; Deep is the same from one that is two folders down.
const (
	File = "../bench.json"
	Deep = "../../bench.json"
)

// Case is one line of bench.json. Bases that there are none of are 0.
type Case struct {
	Name  string  `json:"name"`
	N     int     `json:"n"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	Base  float64 `json:"base_p50_ms"`
	Ratio float64 `json:"ratio"`
	Unit  string  `json:"unit,omitempty"` // when p50 is no time
	Goal  string  `json:"goal"`
	Base9 float64 `json:"base_p95_ms,omitempty"`

	P99    float64 `json:"p99_ms,omitempty"` // where the goal is about the slowest
	Base99 float64 `json:"base_p99_ms,omitempty"`

	Worst  float64 `json:"worst_ms,omitempty"` // where the goal is about each
	Missed string  `json:"missed,omitempty"`   // how the goal was missed
}

// Times is the case of a number of times; took must not be empty.
func Times(name, goal string, took []time.Duration) Case {
	return Case{Name: name, Goal: goal, N: len(took), P50: Percentile(took, 50), P95: Percentile(took, 95)}
}

// Amount is the case of one figure that is no time.
func Amount(name, goal, unit string, n float64) Case {
	return Case{Name: name, Goal: goal, N: 1, P50: n, P95: n, Unit: unit}
}

// Percentile gives the p-th percentile of d, from 0 to 100, in milliseconds; d must not be empty.
func Percentile(d []time.Duration, p int) float64 {
	d = slices.Sorted(slices.Values(d))
	return float64(d[min(len(d)*p/100, len(d)-1)]) / float64(time.Millisecond)
}

// content is what the file has.
type content struct {
	Cases  []Case   `json:"cases"`
	Failed []string `json:"failed"` // groups of which some case could not be measured
}

// Record judges a case and puts it into the file, in the place of an earlier one of its name. It writes at once: what comes after it may
// take the whole run down.
func Record(t testing.TB, path string, c Case) {
	t.Helper()
	c = Judge(t, c)
	change(t, path, func(f *content) {
		if at := slices.IndexFunc(f.Cases, func(old Case) bool { return old.Name == c.Name }); at >= 0 {
			f.Cases[at] = c
			return
		}
		f.Cases = append(f.Cases, c)
	})
}

// Ended notes in the file whether all cases of a group could be measured.
func Ended(t testing.TB, path, group string, measured bool) {
	t.Helper()
	change(t, path, func(f *content) {
		f.Failed = slices.DeleteFunc(f.Failed, func(name string) bool { return name == group })
		if !measured {
			f.Failed = append(f.Failed, group)
		}
	})
}

func change(t testing.TB, path string, with func(*content)) {
	t.Helper()
	var f content
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		err = json.Unmarshal(text, &f)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		with(&f)
		text, err = json.MarshalIndent(f, "", "  ")
	}
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
