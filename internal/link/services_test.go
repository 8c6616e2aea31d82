package link_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// awaitService asks until the service is as wanted.
func awaitService(t *testing.T, s *link.Session, name string, as func(wire.ServiceStatus) bool) wire.ServiceStatus {
	t.Helper()
	ctx := testContext(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := s.Services(ctx)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(st wire.ServiceStatus) bool { return st.Name == name })
		if i >= 0 && as(all[i]) {
			return all[i]
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s is not as wanted: %+v", name, all)
		}
	}
}

// awaitLine waits until a service has written a line.
func awaitLine(t *testing.T, s *link.Session, service, text string) {
	t.Helper()
	found := errors.New("found")
	err := s.FollowLogs(testContext(t), time.Time{}, func(lines []wire.LogLine) error {
		for _, l := range lines {
			if l.Service == service && string(l.Text) == text {
				return found
			}
		}
		return nil
	})
	if err != found {
		t.Errorf("%s does not write %q: %v", service, text, err)
	}
}

func TestFollowLogs_HasCommandsThatAskForIt(t *testing.T) {
	s := connect(t, wire.Setup{})
	for name, log := range map[string]string{"quiet": "", "loud": "build"} {
		if got := run(t, s, wire.ExecStart{Command: []string{"sh", "-c", "echo " + name + "; printf '10 %%\\rdone'"}, Log: log}); got.stdout.String() != name+"\n10 %\rdone" {
			t.Errorf("the caller gets %q", &got.stdout)
		}
	}
	awaitLine(t, s, "build", "done")
	_ = s.FollowLogs(testContext(t), time.Time{}, func(lines []wire.LogLine) error {
		var got []string
		for _, l := range lines {
			got = append(got, l.Service+" "+string(l.Text))
		}
		if !slices.Equal(got, []string{"build loud", "build done"}) {
			t.Errorf("kept is %q", got)
		}
		return errors.New("enough")
	})
}

func isRunning(st wire.ServiceStatus) bool { return st.State == wire.ServiceRunning }

func TestServices_StartStopAndLog(t *testing.T) {
	s := connect(t, wire.Setup{Services: []wire.Service{
		{Name: "auto", Command: []string{"sh", "-c", "echo $A; exec sleep 1000"}, Env: map[string]string{"A": "b"}, Autostart: true},
		{Name: "manual", Command: []string{"sleep", "1000"}, Port: 81}}})
	ctx := testContext(t)
	auto := awaitService(t, s, "auto", isRunning)
	if st := awaitService(t, s, "manual", func(wire.ServiceStatus) bool { return true }); st.State != wire.ServiceStopped || st.Port != 81 {
		t.Errorf("got %+v", st)
	}
	if err := s.StartService(ctx, "manual"); err != nil {
		t.Fatal(err)
	}
	awaitService(t, s, "manual", isRunning)
	awaitLine(t, s, "auto", "b")
	if err := s.StopService(ctx, "auto"); err != nil {
		t.Fatal(err)
	}
	if running(auto.PID) {
		t.Error("it runs on")
	}
	if st := awaitService(t, s, "auto", func(wire.ServiceStatus) bool { return true }); st.State != wire.ServiceStopped {
		t.Errorf("got %+v", st)
	}
	awaitLine(t, s, "auto", "b")
	if err := s.StopService(ctx, "none"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestServices_WhatCannotStartSaysWhyAndWaits(t *testing.T) {
	s := connect(t, wire.Setup{Services: []wire.Service{{Name: "bad", Command: []string{"/no/such"}, Autostart: true}}})
	st := awaitService(t, s, "bad", func(st wire.ServiceStatus) bool { return st.Restarts > 0 })
	if st.Problem == "" || st.ExitCode != 127 || !st.Retry.After(st.Since) {
		t.Errorf("got %+v", st)
	}
}

func TestFollowLogs_GoesOnWhereItWas(t *testing.T) {
	s := connect(t, wire.Setup{Services: []wire.Service{
		{Name: "talks", Command: []string{"sh", "-c", "echo one; echo two; read x < /dev/zero"}, Autostart: true}}})
	collect := func(after time.Time, until string) (texts []string, last time.Time) {
		enough := errors.New("enough")
		err := s.FollowLogs(testContext(t), after, func(lines []wire.LogLine) error {
			for _, l := range lines {
				texts, last = append(texts, l.Service+": "+string(l.Text)), l.Time
				if string(l.Text) == until {
					return enough
				}
			}
			return nil
		})
		if err != enough {
			t.Fatal(err)
		}
		return texts, last
	}
	first, last := collect(time.Time{}, "two")
	if len(first) != 3 || first[1] != "talks: one" {
		t.Errorf("got %q", first)
	}
	if err := s.StopService(testContext(t), "talks"); err != nil {
		t.Fatal(err)
	}
	again, _ := collect(last, "[sandboxd] It was stopped (exit code 143).")
	if len(again) != 1 {
		t.Errorf("then %q", again)
	}
}
