package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/activity"
	"sandboxd/internal/activity/activitytest"
	"sandboxd/internal/backup"
	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/sandbox"
)

// TestRecord_OnlyWhatNoRequestTellsOf has one entry at most for each thing that happens.
func TestRecord_OnlyWhatNoRequestTellsOf(t *testing.T) {
	box := sandbox.Sandbox{ID: "s", Name: "lab", Owner: "u", State: sandbox.Failed, Problem: "It ended."}
	ada := func(a activity.Action) activity.Caller {
		return activity.Caller{UserID: "u", User: "ada", Via: activity.API, From: "192.0.2.1", Request: "r", Action: a}
	}
	full := fault.New(fault.Unavailable, "The host is full.")
	for _, c := range []struct {
		what string
		act  sandbox.Action
		by   activity.Caller
		err  error
		want string // via, action, outcome and problem
	}{
		{"a command wakes it", sandbox.ActionWake, ada("command.run"), nil, "api sandbox.wake done "},
		{"a page of its own wakes it", sandbox.ActionWake, activity.Caller{Via: activity.Address}, nil, "address sandbox.wake done "},
		{"a wake on a full host", sandbox.ActionWake, ada("command.run"), full, "api sandbox.wake failed The host is full."},
		{"a wake of one that is gone", sandbox.ActionWake, ada("command.run"), fault.New(fault.Gone, "It is gone."), "api sandbox.wake refused It is gone."},
		{"a wake by nobody", sandbox.ActionWake, activity.Caller{}, nil, "sandboxd sandbox.wake done "},
		{"its owner starts it", sandbox.ActionWake, ada("sandbox.start"), nil, ""},
		{"its owner restarts it", sandbox.ActionStart, ada("sandbox.restart"), nil, ""},
		{"its owner creates it", sandbox.ActionCreate, ada("sandbox.create"), nil, ""},
		{"its owner stops it", sandbox.ActionStop, ada("sandbox.stop"), nil, ""},
		{"its owner deletes it", sandbox.ActionDelete, ada("sandbox.delete"), nil, ""},
		{"its owner puts it to sleep", sandbox.ActionSleep, ada(activity.SandboxSleep), nil, ""},
		{"its owner has it frozen", sandbox.ActionFreeze, ada(activity.SandboxSleep), nil, ""},
		{"an admin puts many to sleep", sandbox.ActionSleep, ada("host.sleep"), nil, "api sandbox.sleep done "},
		{"it is unused", sandbox.ActionFreeze, activity.Caller{}, nil, "sandboxd sandbox.freeze done "},
		{"it is unused for longer", sandbox.ActionSleep, activity.Caller{}, nil, "sandboxd sandbox.sleep done "},
		{"it is used again meanwhile", sandbox.ActionSleep, activity.Caller{}, fault.New(fault.Conflict, "It was used again meanwhile."), ""},
		{"it does not sleep", sandbox.ActionSleep, activity.Caller{}, errors.New("a bug"), "sandboxd sandbox.sleep failed " + fault.Message(errors.New("a bug"))},
		{"it fails", sandbox.ActionFail, ada("sandbox.start"), nil, "sandboxd sandbox.fail failed It ended."},
	} {
		a := &app{activity: activity.New(activity.Config{Store: &activitytest.Memory{}})}
		ctx := t.Context()
		if c.by != (activity.Caller{}) {
			ctx = activity.With(ctx, c.by)
		}
		a.observe(ctx, c.act, sandbox.Running, box)(c.err)
		all, _, err := a.activity.Find(t.Context(), activity.Query{Scope: activity.Scope{All: true}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range all {
			got = append(got, string(e.Via)+" "+string(e.Action)+" "+string(e.Outcome)+" "+e.Problem)
			if e.SandboxID != "s" || e.Sandbox != "lab" || e.Owner != "u" || e.Via == activity.API != (e.User == "ada" && e.From == "192.0.2.1" && e.Request == "r") {
				t.Errorf("%s: %+v", c.what, e)
			}
		}
		if want := slices.DeleteFunc([]string{c.want}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%s: recorded is %q, want %q", c.what, got, want)
		}
	}
}

// checkEngine is a repository.Engine that checks.
type checkEngine struct {
	repository.Engine
	found repository.Checked
	err   error
}

func (e checkEngine) Check(context.Context, repository.Access, bool, func(repository.Progress)) (repository.Checked, error) {
	return e.found, e.err
}

func TestRecord_WhatEndsBadlyBehindARequest(t *testing.T) {
	a := &app{activity: activity.New(activity.Config{Store: &activitytest.Memory{}})}
	made := backup.Backup{ID: "b", SandboxID: "s", Sandbox: "lab", Owner: "u", Problem: "It cannot be read back."}
	recordBackup(a.activity, made)
	made.Schedule = "nightly"
	recordBackup(a.activity, made)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		ctx context.Context
		checkEngine
	}{
		{t.Context(), checkEngine{found: repository.Checked{Backups: 5}}},
		{t.Context(), checkEngine{found: repository.Checked{Backups: 5, Damaged: []string{"one", "two"}}}},
		{t.Context(), checkEngine{err: fault.New(fault.Unavailable, "It cannot be reached.")}},
		{gone, checkEngine{err: context.Canceled}},
	} {
		found, err := recordedEngine{c.checkEngine, a.activity}.Check(c.ctx, repository.Access{Name: "nas"}, true, nil)
		if !errors.Is(err, c.err) || found.Backups != c.found.Backups {
			t.Errorf("%+v: %+v, %v", c, found, err)
		}
	}
	all, _, err := a.activity.Find(t.Context(), activity.Query{Scope: activity.Scope{All: true}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		got = append(got, strings.Join([]string{string(e.Via), string(e.Action), e.Sandbox, e.Owner, e.Object, string(e.Outcome), e.Problem}, " "))
	}
	want := []string{"sandboxd repository.fail   nas failed It cannot be reached.", "sandboxd repository.fail   nas failed Backups that cannot be restored: 2 of 5.",
		"sandboxd backup.fail lab u b failed It cannot be read back."}
	if !slices.Equal(got, want) {
		t.Errorf("recorded is %q, want %q", got, want)
	}
}

func TestActivityKeep_IsATime(t *testing.T) {
	for text, fits := range map[string]bool{"180d": true, "48h": true, "365d": true, "0": false, "0s": false, "": false, "never": false, "default": false, "-1h": false, "x": false, "366d": false} {
		if _, err := (&Config{ActivityKeep: text}).activityKeep(); fits != (err == nil) || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
