package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/alert"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
)

func TestTroublesOf_SaysWhoMaySeeThem(t *testing.T) {
	one := schedule.Schedule{Name: "nightly", Owner: "root", Target: schedule.Target{Kind: schedule.OfTemplate, Template: "base"}}
	boxes := []sandbox.Sandbox{{ID: "1", Name: "lab", Owner: "ada", Spec: sandbox.Spec{Template: "base"}}}
	got := troublesOf([]schedule.Trouble{
		{Sort: schedule.Failing, Schedule: one, SandboxID: "1", Text: "The disk is full."},
		{Sort: schedule.Unrestored, Schedule: one, SandboxID: "gone", Text: "It differs."},
		{Sort: schedule.Overdue, Schedule: one, Text: "missed"},
	}, boxes)
	want := []alert.BackupTrouble{
		{Kind: alert.BackupFailed, Target: alert.Target{SandboxID: "1", Sandbox: "lab", Owner: "ada", Template: "base", Part: "nightly"}, Text: "The disk is full."},
		{Kind: alert.BackupMissed, Target: alert.Target{Owner: "root", Template: "base", Part: "nightly"}, Text: "missed"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
