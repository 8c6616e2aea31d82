package thaw_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/guest/thaw"
)

// beWaiter makes the test's program wait, so that it can be frozen.
const beWaiter = "THAW_TEST_WAITER"

// span is what a frozen wait was to take; the freezes are longer by more than a second.
const span = 3 * time.Second

// stopItself freezes the program soon after its wait has begun. It does so itself, since one that is told to by another
// process may be told on a busy machine when its wait is over.
func stopItself() {
	time.AfterFunc(50*time.Millisecond, func() { syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
}

func init() {
	switch os.Getenv(beWaiter) {
	case "wait":
		stopItself()
		fmt.Println(thaw.Wait(make(chan struct{}), span))
		os.Exit(0)
	case "read":
		near, far := net.Pipe()
		c := thaw.NewConn(near)
		stopItself()
		c.SetReadDeadline(time.Now().Add(span))
		_, err := c.Read(make([]byte, 1))
		fmt.Println(errors.Is(err, os.ErrDeadlineExceeded))
		far.Close()
		os.Exit(0)
	}
}

// A process that is stopped sees time jump, as a frozen sandbox does.
func TestWaits_BeginAnewAfterAFreeze(t *testing.T) {
	for mode, want := range map[string]string{"wait": "false\n", "read": "true\n"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), beWaiter+"="+mode)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
				t.Fatalf("it did not stop: %#x, %v", status, err)
			}
			<-time.After(span + 1500*time.Millisecond) // a freeze is nothing but time that passes without the process
			thawed := time.Now()
			cmd.Process.Signal(syscall.SIGCONT)
			if l, err := bufio.NewReader(out).ReadString('\n'); l != want || err != nil {
				t.Fatalf("got %q, %v", l, err)
			}
			if d := time.Since(thawed); d < span {
				t.Errorf("it was given %v after the thaw", d)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWait_EndsWithWhatIsWaitedForOrWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(done) })
		began := time.Now()
		if thaw.Wait(done, time.Second) || time.Since(began) != time.Second {
			t.Errorf("it took %v", time.Since(began))
		}
		if !thaw.Wait(done, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("it took %v", time.Since(began))
		}
	})
}

func TestBudget_IsSpentByStepsAndNotByJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := thaw.NewBudget(5 * time.Second)
		time.Sleep(24 * time.Hour)
		if b.Spent() {
			t.Error("a freeze has spent it")
		}
		steps := 0
		for !b.Spent() {
			time.Sleep(100 * time.Millisecond)
			steps++
		}
		if steps < 39 || steps > 50 {
			t.Errorf("%d steps of 100 ms", steps)
		}
	})
}

// stubborn is a connection whose deadlines pass in a freeze, the first times that they are asked for.
type stubborn struct {
	net.Conn
	freezes int
	due     time.Time
	wrote   strings.Builder
}

func (s *stubborn) SetReadDeadline(t time.Time) error  { s.due = t; return nil }
func (s *stubborn) SetWriteDeadline(t time.Time) error { s.due = t; return nil }

func (s *stubborn) pass() error {
	<-time.After(time.Until(s.due))
	if s.freezes > 0 {
		s.freezes--
		<-time.After(time.Hour)
	}
	return fmt.Errorf("pass: %w", os.ErrDeadlineExceeded)
}

func (s *stubborn) Read([]byte) (int, error) { return 0, s.pass() }

func (s *stubborn) Write(p []byte) (int, error) {
	if s.freezes == 0 {
		return s.wrote.Write(p)
	}
	s.wrote.Write(p[:1])
	return 1, s.pass()
}

func TestConn_DeadlinesThatPassInAFreezeAreGivenOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &stubborn{freezes: 3}
		c := thaw.NewConn(under)
		began := time.Now()
		c.SetReadDeadline(began.Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(began); d != 3*time.Hour+4*time.Minute {
			t.Errorf("it took %v", d)
		}
		c.SetReadDeadline(time.Unix(1, 0)) // as net/http ends a read from outside
		under.freezes = 1
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || under.freezes > 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestConn_WritesAllThatAFreezeInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &stubborn{freezes: 4}
		n, err := thaw.WriteWithin(under, []byte("hello there"), time.Second)
		if n != 11 || err != nil || under.wrote.String() != "hello there" {
			t.Errorf("got %d, %v, %q", n, err, under.wrote.String())
		}
	})
}
