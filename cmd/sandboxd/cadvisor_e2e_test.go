//go:build e2e

package main

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// cadvisorBinary is made by make bin/cadvisor.
const cadvisorBinary = "../../bin/cadvisor"

// runCAdvisor runs a real one at an address, until end is called or the test ends.
func runCAdvisor(t *testing.T, addr string) (end func()) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(cadvisorBinary, "-listen_ip", host, "-port", port, "-docker_only", "-housekeeping_interval", "2s",
		"-allow_dynamic_housekeeping=false", "-disable_metrics", "disk,tcp,udp,advtcp,percpu,sched,hugetlb,process")
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run 'make bin/cadvisor' first", err)
	}
	end = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Cleanup(end)
	return end
}

// TestCAdvisor_GivesTheFiguresAndMayComeAndGo starts sandboxd before its cAdvisor, and ends cAdvisor in the middle.
func TestCAdvisor_GivesTheFiguresAndMayComeAndGo(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t), "--cadvisor", "http://"+addr)
	s.createEcho("lab", echoProgram(t))
	doctor := func(says string) { // cAdvisor 0.38 answers nothing while any container is as new as those of other tests are
		t.Helper()
		s.until("doctor says "+says, func() bool {
			return strings.Contains(s.cli("doctor", "--only", "figures", "--cadvisor", "http://"+addr), says)
		})
	}
	work := func() {
		s.exec("lab", map[string]any{"command": "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"})
	}
	seen := func(since time.Time) bool {
		for _, p := range s.metrics("/sandboxes/lab/metrics").Points {
			if p.Time.After(since) && p.CPU > 0.02 && p.Memory > 0 {
				return true
			}
		}
		return false
	}
	work()
	doctor("does not answer")
	if seen(time.Time{}) {
		t.Error("there are figures without cAdvisor")
	}
	for range 2 {
		end, begun := runCAdvisor(t, addr), time.Now()
		s.until("cAdvisor's figures are seen", func() bool { work(); return seen(begun) })
		doctor("come from cAdvisor")
		end()
		work() // sandboxes go on without it
		doctor("does not answer")
	}
}
