// Package child does one thing with a kopia repository and ends: it is what a child process of sandboxd runs, so that kopia's memory
// goes back to the system and a crash of it takes nothing along.
//
// The process that starts it, and what both say to each other, is package kopia. It keeps nothing in memory from one time to the next, and
// nothing on this machine but a cache.
//
// Invariant: a backup is in the list of a repository only after all of it was written and what is new of it was read back, and secrets are
// neither written to a file nor part of an error.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/repository"
)

// Bounds.
const (
	memory       = 192 << 20 // bytes that are aimed at
	maxLine      = 4 << 20   // bytes of a line from the parent
	progressTime = time.Second
)

// child is the work on one request.
type child struct {
	kopia.Request
	in     *bufio.Reader
	stream *os.File       // nil unless it saves or reads
	end    chan kopia.End // has what the parent says at the end of the stream
	store  *storage

	mu       sync.Mutex
	out      *json.Encoder
	progress repository.Progress
}

// Main reads a request from in, does it, and writes answers to out. It blocks until that is done; the process ends at once when in is
// closed before. The error has been answered already.
func Main(in io.Reader, out io.Writer) error {
	debug.SetMemoryLimit(memory)
	c := &child{end: make(chan kopia.End, 1), in: bufio.NewReaderSize(in, maxLine), out: json.NewEncoder(out)}
	line, err := c.in.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.Request)
	}
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "This command is for sandboxd itself.")
	}
	if c.Do == kopia.DoSave || c.Do == kopia.DoRead {
		c.stream = os.NewFile(kopia.StreamFile, "stream")
	}
	ctx := context.Background()
	stop := c.tell()
	answer, err := c.do(ctx)
	stop()
	if err != nil {
		answer = kopia.Answer{Fault: c.fault(err)}
	}
	answer.Done = err == nil
	return errors.Join(err, c.answer(answer))
}

func (c *child) do(ctx context.Context) (kopia.Answer, error) {
	go c.endWithParent()
	switch c.Do {
	case kopia.DoConnect:
		return c.connect(ctx)
	case kopia.DoList:
		return c.list(ctx)
	case kopia.DoSave:
		return c.save(ctx)
	case kopia.DoRead:
		return c.read(ctx)
	case kopia.DoDelete:
		return c.delete(ctx)
	case kopia.DoCheck:
		return c.check(ctx)
	case kopia.DoMaintain:
		return c.maintain(ctx)
	}
	return kopia.Answer{}, fault.New(fault.Invalid, "There is nothing called %.20q to be done.", c.Do)
}

// endWithParent ends this process when the parent has ended, or does not want it any more.
func (c *child) endWithParent() {
	var end kopia.End
	in := json.NewDecoder(c.in)
	for in.Decode(&end) == nil {
		c.end <- end
	}
	os.Exit(1)
}

func (c *child) answer(a kopia.Answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Encode(a)
}

// moved adds to how far the work is.
func (c *child) moved(change func(*repository.Progress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.progress)
}

// tell tells the parent now and then how far the work is, until stop.
func (c *child) tell() (stop func()) {
	end := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(progressTime)
		defer ticker.Stop()
		var told repository.Progress
		for {
			select {
			case <-ticker.C:
			case <-end:
				return
			}
			c.mu.Lock()
			now := c.progress
			c.mu.Unlock()
			if now != told {
				told = now
				_ = c.answer(kopia.Answer{Progress: &now}) // a parent that does not listen ends this process
			}
		}
	})
	return func() { close(end); telling.Wait() }
}

// fault makes an error fit for the parent.
func (c *child) fault(err error) *kopia.Fault {
	err = classified(err)
	var place repository.PlaceError
	errors.As(err, &place)
	var item repository.ItemError
	return &kopia.Fault{Item: errors.As(err, &item), Kind: fault.KindOf(err), Field: fault.FieldOf(err), Message: c.scrub(fault.Message(err)), Public: place.Public, Detail: c.scrub(err.Error())}
}

// scrub takes secrets out of a text, whatever has put them in.
func (c *child) scrub(text string) string {
	s := c.Access.Secrets
	for _, secret := range []string{s.Password, s.SecretKey, s.PrivateKey} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}
