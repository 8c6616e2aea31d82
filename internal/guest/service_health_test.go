package guest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// checkup is a pace at which a check takes milliseconds.
var checkup = pace{first: 5 * time.Millisecond, longest: 20 * time.Millisecond, healthy: time.Minute,
	look: 2 * time.Millisecond, early: 2 * time.Millisecond, settle: 0}

// ward answers with a status that the test may change, on a port of its own, and counts the questions.
func ward(t *testing.T) (port int, status, asked *atomic.Int32) {
	t.Helper()
	status, asked = &atomic.Int32{}, &atomic.Int32{}
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(int(status.Load()))
		asked.Add(1)
	}))
	t.Cleanup(server.Close)
	_, number, _ := net.SplitHostPort(server.Listener.Addr().String())
	port, _ = strconv.Atoi(number)
	return port, status, asked
}

func TestHealth_UnhealthyThreeTimesInARowIsRestarted(t *testing.T) {
	s := supervise(t)
	s.pace = checkup
	port, answer, _ := ward(t)
	web := shell("web", "echo run; exec sleep 1000")
	web.Port, web.Health = port, &wire.Health{Path: "/healthz"}
	s.apply([]wire.Service{web})
	within(t, "health", func() bool { return status(s, "web").Health == wire.HealthHealthy })
	first := status(s, "web")
	within(t, "the first run's word", func() bool { return len(said(t, s)) > 0 }) // before the run is ended
	answer.Store(http.StatusInternalServerError)
	within(t, "the restart", func() bool { return status(s, "web").Restarts > 0 })
	within(t, "a pause of a sick one", func() bool {
		st := status(s, "web")
		return st.State == wire.ServiceWaiting && st.Health == wire.HealthUnhealthy && strings.Contains(st.Problem, "/healthz") &&
			strings.Contains(st.Problem, "500") && !st.Retry.IsZero()
	})
	answer.Store(http.StatusNoContent)
	within(t, "health again", func() bool {
		st := status(s, "web")
		return st.Health == wire.HealthHealthy && st.PID != first.PID && st.Problem == ""
	})
	sv, _ := s.find("web")
	within(t, "the second run's word", func() bool { return len(said(t, s)) > 1 })
	sv.stop(time.Second)
	within(t, "the end", func() bool {
		st := status(s, "web")
		return st.State == wire.ServiceStopped && st.Health == wire.HealthUnknown
	})
}

func TestHealth_OneFailureIsToldButRestartsNothing(t *testing.T) {
	s := supervise(t)
	s.pace = checkup
	var asked atomic.Int32
	seen := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3: // not before the failure has been seen
			select {
			case <-seen:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(server.Close)
	web := shell("web", "exec sleep 1000")
	web.Port, web.Health = server.Listener.Addr().(*net.TCPAddr).Port, &wire.Health{Path: "/healthz"}
	s.apply([]wire.Service{web})
	within(t, "a failure", func() bool { return status(s, "web").Health == wire.HealthUnhealthy })
	close(seen)
	within(t, "health again", func() bool { return status(s, "web").Health == wire.HealthHealthy })
	if st := status(s, "web"); st.Restarts != 0 {
		t.Errorf("got %+v", st)
	}
}

func TestHealth_AConnectionIsEnoughWithoutAPath(t *testing.T) {
	s := supervise(t)
	s.pace = checkup
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := shell("web", "exec sleep 1000")
	web.Port, web.Health = l.Addr().(*net.TCPAddr).Port, &wire.Health{}
	s.apply([]wire.Service{web})
	within(t, "health", func() bool { return status(s, "web").Health == wire.HealthHealthy })
	l.Close()
	within(t, "the restart", func() bool {
		st := status(s, "web")
		return st.Restarts > 0 && strings.Contains(st.Problem, strconv.Itoa(web.Port))
	})
}

func TestHealth_OneThatIsAboutToStartIsLeftAlone(t *testing.T) {
	s := supervise(t)
	s.pace = checkup
	s.pace.settle = time.Hour
	port, answer, asked := ward(t)
	answer.Store(http.StatusServiceUnavailable)
	web := shell("web", "exec sleep 1000")
	web.Port, web.Health = port, &wire.Health{Path: "/healthz"}
	s.apply([]wire.Service{web})
	within(t, "the start", func() bool { return status(s, "web").State == wire.ServiceRunning })
	sv, _ := s.find("web")
	within(t, "looks that fail", func() bool { return asked.Load() > 2*healthTries })
	if st := sv.now(); st.Health != wire.HealthUnknown || st.Restarts != 0 {
		t.Errorf("got %+v", st)
	}
	answer.Store(http.StatusOK)
	within(t, "health", func() bool { return sv.now().Health == wire.HealthHealthy })
}

func TestHealth_PausesGrowForOneThatNeverWorks(t *testing.T) {
	s := supervise(t)
	s.pace = checkup
	s.pace.healthy = 0 // every run is long enough
	web := shell("web", "exec sleep 1000")
	web.Port, web.Health = 1, &wire.Health{} // nothing listens there
	s.apply([]wire.Service{web})
	within(t, "a longer pause", func() bool {
		st := status(s, "web")
		return st.State == wire.ServiceWaiting && st.Retry.Sub(st.Since) >= 19*time.Millisecond
	})
}

func TestHealth_ASilentProgramIsUnhealthyInTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close() // never a word
		}
	}()
	began := time.Now()
	if wrong := look(t.Context(), l.Addr().(*net.TCPAddr).Port, "/"); wrong == "" {
		t.Error("it is healthy")
	}
	if took := time.Since(began); took > healthTimeout+patience {
		t.Errorf("took %s", took)
	}
}

func TestServices_RestartEndsTheRunAndBeginsAnother(t *testing.T) {
	s := supervise(t)
	s.apply([]wire.Service{shell("web", "exec sleep 1000"), {Name: "idle", Command: []string{"sleep", "1000"}}})
	for _, name := range []string{"web", "idle"} {
		sv, _ := s.find(name)
		if name == "web" {
			within(t, "the start", func() bool { return sv.now().State == wire.ServiceRunning })
		}
		before := sv.now().PID
		<-sv.restart(time.Second)
		within(t, "the next run", func() bool {
			st := sv.now()
			return st.State == wire.ServiceRunning && st.PID != before && st.Restarts == 0
		})
	}
}

// deaf is a service that runs on for as long as it may when it is asked to end, and says when it cannot hear any more.
func deaf(t *testing.T, s *supervisor) *service {
	t.Helper()
	s.apply([]wire.Service{shell("deaf", "trap '' TERM; echo up; while :; do sleep 1; done")})
	sv, err := s.find("deaf")
	if err != nil {
		t.Fatal(err)
	}
	within(t, "the start", func() bool { return slices.Contains(said(t, s), "deaf up") })
	return sv
}

func TestServices_StopGivesTheEndOfItsOwnRunAlthoughTheNextGoesOn(t *testing.T) {
	s := supervise(t)
	sv := deaf(t, s)
	ended := sv.stop(50 * time.Millisecond)
	sv.start()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it waits for the run that was begun afterwards")
	}
	within(t, "the next run", func() bool { return status(s, "deaf").State == wire.ServiceRunning })
}

func TestServices_ALostRequestDoesNotWaitForAStop(t *testing.T) {
	s := supervise(t)
	deaf(t, s)
	for what, serve := range map[string]http.HandlerFunc{"stop": s.on(serveServiceStop), "restart": s.on(serveServiceRestart)} {
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
		r.SetPathValue("name", "deaf")
		leave()
		begun := time.Now()
		serve(httptest.NewRecorder(), r)
		if took := time.Since(begun); took > wire.StopGrace/2 {
			t.Errorf("%s: it has waited for %v", what, took)
		}
	}
}

func TestServices_AnotherDefinitionRunsOnWhereTheOldOneDid(t *testing.T) {
	s := supervise(t)
	manual := wire.Service{Name: "manual", Command: []string{"sh", "-c", "echo one; exec sleep 1000"}}
	s.apply([]wire.Service{manual})
	sv, _ := s.find("manual")
	sv.start()
	within(t, "the start", func() bool { return len(said(t, s)) > 0 })
	before := sv.now().PID
	manual.Autostart = true
	s.apply([]wire.Service{manual})
	if now, _ := s.find("manual"); now != sv || sv.now().PID != before || !sv.definition().Autostart {
		t.Error("a change of autostart alone has touched the run")
	}
	manual.Autostart, manual.Command = false, []string{"sh", "-c", "echo two; exec sleep 1000"}
	s.apply([]wire.Service{manual})
	within(t, "the second run", func() bool { return slices.Equal(said(t, s), []string{"manual one", "manual two"}) })
}
