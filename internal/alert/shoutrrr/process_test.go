package shoutrrr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

// What this program is as a child.
const (
	asChild    = "as-child"
	asTalker   = "as-talker"   // it writes more than the result
	asDescribe = "as-describe" // it tells its arguments and variables
)

// TestMain lets this program be a child.
func TestMain(m *testing.M) {
	switch os.Args[len(os.Args)-1] {
	case asChild:
		os.Exit(Main())
	case asTalker:
		os.Exit(talk(os.Stdout))
	case asDescribe:
		_ = tell(os.Stdout, fault.New(fault.Unavailable, "%s", strings.Join(append(os.Args, os.Environ()...), "\n")))
		os.Exit(0)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // else each child of a test with the race detector waits a second at its end
	os.Exit(m.Run())
}

// talk writes what looks like a result, by all ways that the library has.
func talk(early *os.File) int {
	out, err := takeOutput()
	if err != nil {
		return exitBroken
	}
	const taken = `{"taken":true}`
	fmt.Println(taken)
	_, _ = io.WriteString(early, taken)
	_, _ = io.WriteString(os.NewFile(1, "stdout"), taken)
	if tell(out, fault.New(fault.Unavailable, "It was not taken.")) != nil {
		return exitBroken
	}
	return 0
}

// endless runs a server that answers without end, and counts the bytes of its longest answer.
func endless(t *testing.T) (host string, sent *atomic.Int64) {
	t.Helper()
	sent = new(atomic.Int64)
	piece := bytes.Repeat([]byte("x"), 64<<10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			n, err := w.Write(piece)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), sent
}

func TestSend_AnEndlessAnswerEndsTheChild(t *testing.T) {
	host, sent := endless(t)
	s := sender()
	for _, address := range []string{"generic+http://" + host + "/" + token, "ntfy://ada:" + token + "@" + host + "/topic?scheme=http"} {
		sent.Store(0)
		err := s.Send(t.Context(), to(address), firing)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "too long") || strings.Contains(err.Error(), token) {
			t.Errorf("%v: %v", fault.KindOf(err), err)
		}
		if n := sent.Load(); n > 8*memoryLimit {
			t.Errorf("it took %d MiB", n>>20)
		}
	}
}

func TestSend_WhatHangsIsEndedAtTheLimit(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	host, _ := listen(t, http.StatusOK, free)
	s := sender()
	s.Limit = 500 * time.Millisecond
	began := time.Now()
	err := s.Send(t.Context(), to("generic+http://"+host+"/"+token), firing)
	if !fault.Is(err, fault.Timeout) || strings.Contains(err.Error(), token) {
		t.Errorf("%v: %v", fault.KindOf(err), err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it took %s", took)
	}
}

// TestMain_EndsWithoutACaller runs a child that nobody ends.
func TestMain_EndsWithoutACaller(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	host, _ := listen(t, http.StatusOK, free)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	in, err := json.Marshal(request{Address: "generic+http://" + host + "/", Text: "hello", Limit: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0], asChild)
	cmd.Stdin = bytes.NewReader(in)
	var exit *exec.ExitError
	if out, err := cmd.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != exitLate || len(out) != 0 {
		t.Errorf("%v, %q", err, out)
	}
}

func TestSend_ACancelEndsTheChildAndIsNoTimeout(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	host, got := listen(t, http.StatusOK, free)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; cancel() }()
	if err := sender().Send(ctx, to("generic+http://"+host+"/"), firing); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "interrupted") {
		t.Error(err)
	}
}

// TestSend_AChildThatDoesNotDoItsWork has one that gives back what it read, with the address.
func TestSend_AChildThatDoesNotDoItsWork(t *testing.T) {
	const says = "The process that sends to ntfy failed."
	for _, program := range [][]string{
		{"/no/such/program"}, {"true"}, {"false"}, {"echo", "hello"}, {"cat"}, {"yes"}, {"sh", "-c", "kill -9 $$"},
		{"echo", `{"taken":true}{"taken":true}`}, {"echo", `{"kind":1,"message":""}`}, {"echo", `{"kind":0,"message":"hello"}`},
	} {
		s := Sender{Program: program, Limit: patience}
		err := s.Send(t.Context(), to("ntfy://ada:"+token+"@127.0.0.1:1/topic"), firing)
		if !fault.Is(err, fault.Unavailable) || !strings.HasPrefix(fault.Message(err), says) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", program, err)
		}
	}
}

func TestSend_WhatTheLibraryPrintsIsNoResult(t *testing.T) {
	s := Sender{Program: []string{os.Args[0], asTalker}, Limit: patience}
	if err := s.Send(t.Context(), to("ntfy://127.0.0.1:1/topic"), firing); fault.Message(err) != "It was not taken." {
		t.Error(err)
	}
}

func TestSend_AChildGetsNoSecretBesideItsInput(t *testing.T) {
	t.Setenv("SANDBOXD_ADMIN_PASSWORD", "correct horse")
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com")
	s := Sender{Program: []string{os.Args[0], asDescribe}, Limit: patience}
	told := fault.Message(s.Send(t.Context(), to("ntfy://ada:"+token+"@127.0.0.1:1/topic"), firing))
	if strings.Contains(told, token) || strings.Contains(told, "horse") || strings.Contains(told, ownVariables) || !strings.Contains(told, "HTTPS_PROXY=http://proxy") {
		t.Error(told)
	}
}
