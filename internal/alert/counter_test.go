package alert_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

func TestAlert_OfAServiceThatIsRestartedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.ServiceDown})
		restarted := func(n int) {
			w.set(func() {
				w.services["lab"] = []wire.ServiceStatus{{Name: "web", State: wire.ServiceRunning, Restarts: n}}
			})
			w.pass(3 * time.Minute)
		}
		w.again()
		w.services["lab"] = []wire.ServiceStatus{{Name: "web", State: wire.ServiceRunning, Restarts: 7}} // nobody knows since when
		w.run()
		restarted(8)
		restarted(9)
		w.want("two restarts")
		restarted(10)
		w.want("three within nine minutes", "firing lab/web: was restarted 3 times within 10 minutes")
		w.pass(10 * time.Minute)
		w.want("when it runs", "resolved lab/web: was restarted 3 times within 10 minutes")
		restarted(0)
		restarted(1)
		w.want("started by hand", "resolved lab/web: was restarted 3 times within 10 minutes")
	})
}

func TestAlert_OfAServiceThatDoesNotStayUpOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.ServiceDown})
		n := 0
		restarted := func() {
			n++
			w.set(func() {
				w.services["lab"] = []wire.ServiceStatus{{Name: "web", State: wire.ServiceRunning, Restarts: n}}
			})
			w.pass(2 * time.Minute)
		}
		for range 5 {
			restarted()
		}
		w.want("before", "firing lab/web: was restarted 5 times within 10 minutes")
		w.again()
		w.run()
		for range 3 {
			restarted()
			w.want("it cannot be told for ten minutes", "firing lab/web: was restarted 3 times within 10 minutes")
		}
		restarted()
		w.want("it keeps restarting", "firing lab/web: was restarted 4 times within 10 minutes")
		w.again()
		w.run()
		w.pass(9 * time.Minute)
		w.want("it may run now", "firing lab/web: was restarted 3 times within 10 minutes")
		w.pass(2 * time.Minute)
		w.want("it runs", "resolved lab/web: was restarted 3 times within 10 minutes")
	})
}

func TestAlert_CountsTheProcessesThatAreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.OOMKill})
		for i, want := range []string{"1 process was killed for lack of memory", "3 processes were killed for lack of memory within 10 minutes",
			"5 processes were killed for lack of memory within 10 minutes", "7 processes were killed for lack of memory within 10 minutes"} {
			w.set(func() { w.kills["lab"] += int64(min(i, 1)) + 1 })
			w.pass(3 * time.Minute)
			w.want("now", "firing lab: "+want)
		}
		w.set(func() { w.kills["lab"] += 1000 })
		w.pass(time.Minute)
		w.want("many", "firing lab: 30 processes or more were killed for lack of memory within 10 minutes")
	})
}

func TestAlert_OfANewServiceThatDoesNotStayUp(t *testing.T) {
	for what, begin := range map[string]func(w *world){
		"a new service": func(w *world) { w.box("den", "ann"); w.pass(time.Minute) },
		"a new sandbox": func(w *world) {},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watching(t, alert.Rule{Kind: alert.ServiceDown})
				w.pass(time.Minute)
				begin(w)
				w.set(func() {
					w.services["den"] = []wire.ServiceStatus{{Name: "web", State: wire.ServiceRunning, Restarts: 5}}
				})
				w.box("den", "ann")
				w.pass(time.Minute)
				w.want("at once", "firing den/web: was restarted 5 times within 10 minutes")
				w.becomes("den", sandbox.Frozen, "")
				w.pass(time.Hour)
				w.becomes("den", sandbox.Running, "")
				w.pass(time.Minute)
				w.want("thawed", "resolved den/web: was restarted 5 times within 10 minutes")
				w.set(func() {
					w.services["den"] = []wire.ServiceStatus{{Name: "web", State: wire.ServiceRunning, Restarts: 1000}}
				})
				w.pass(time.Minute)
				w.want("many", "firing den/web: was restarted 30 times or more within 10 minutes", "resolved den/web: was restarted 5 times within 10 minutes")
			})
		})
	}
}
