package program

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/acp"
	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// run is one turn under way. All of it belongs to the goroutine of Driver.Turn, but for what connection and wait start.
type run struct {
	d     *Driver
	t     *chat.Turn
	how   Start
	s     state
	items []chat.Item // as the turn began

	tools     map[string]*tool // calls that are not over, by their ids
	conn      *connection      // nil while there is none
	answers   chan answer
	waits     sync.WaitGroup // of those who wait for answers
	waiting   context.Context
	quit      func()    // ends them
	lines     []byte    // to be added to the outbox
	owed      int       // bytes of answers that the program has not read yet
	heard     time.Time // when it last wrote something, or was given something
	cancelled time.Time // when it was told to stop; zero for not
	over      bool      // the agent has ended its turn
	compacted bool      // that was said
	problem   error     // how the turn has ended
	watched   time.Time // when its time was last counted; zero for not in this run
	idle      bool      // a person was asked then
}

// What a run does falls into three parts.
type (
	shows struct{ *run } // what the agent does
	asks  struct{ *run } // the person
	opens struct{ *run } // programs, sessions and turns
)

// errLost says that the program is not there any more: its sandbox was stopped.
var errLost = errors.New("the program was lost")

// maxLosses bounds the programs that are begun anew in one turn.
const maxLosses = 2

// work works on the turn until it is over.
func (r *run) work(ctx context.Context) error {
	r.wait(ctx)
	defer func() { r.quit() }()
	defer r.disconnect()
	if err := r.begin(ctx); err != nil {
		return err
	}
	for {
		err := r.talk(ctx)
		r.disconnect()
		if r.s.Limit != "" && ctx.Err() == nil { // however the agent took it
			err = fault.New(fault.Limited, "%s", r.s.Limit)
		}
		switch {
		case err == nil, ctx.Err() != nil && r.t.Continues():
			return err
		case errors.Is(err, errLost) && ctx.Err() == nil:
			if err = r.again(ctx); err == nil {
				continue
			}
		}
		if !r.over {
			r.drop(ctx)
		}
		return err
	}
}

// begin takes up the turn: where it was broken off, in the program that waits for the next message, or in a new one.
func (r *run) begin(ctx context.Context) error {
	if !r.remembers() {
		r.s.Session = ""
		r.drop(ctx)
	}
	if r.t.Again() && r.s.Turn == r.t.Number() {
		if r.s.Done { // only its end was not stored
			r.over = true
			return nil
		}
		if r.s.Program != "" && len(r.s.Peer.Calls) > 0 {
			return r.takeUp(ctx)
		}
	}
	if err := r.t.Checkpoint(ctx); err != nil { // it may change something at any time, and does not say so before
		return err
	}
	if len(r.s.Peer.Calls) > 0 { // of a turn that did not end well
		r.drop(ctx)
	}
	r.s.Turn, r.s.Done, r.s.Losses, r.s.Asked, r.s.Calls = r.t.Number(), false, 0, nil, nil
	r.s.Spent, r.s.Limit = spent{}, ""
	if r.s.Program != "" {
		all, err := r.d.c.Programs.Kept(ctx, r.t.Conversation())
		if err != nil {
			return err
		}
		for _, k := range all {
			if k.ID == r.s.Program && !k.Ended {
				r.together(opens{r}.prepare)
				return r.problem
			}
		}
	}
	return opens{r}.start(ctx)
}

// takeUp continues where the turn was broken off.
func (r *run) takeUp(ctx context.Context) error {
	r.together(shows{r}.reopen)
	if r.s.Limit != "" { // it was being stopped
		r.cancelled = time.Now()
	}
	if r.s.Output == 0 && r.s.Input == 0 { // it may be that it was not begun
		return r.d.c.Programs.Keep(ctx, r.t.Conversation(), r.s.Program, r.how)
	}
	return nil
}

// again begins a program in place of one that was lost.
func (r *run) again(ctx context.Context) error {
	if r.s.Losses++; r.s.Losses > maxLosses {
		return fault.New(fault.Unavailable, "%s was lost with its sandbox %d times in this turn.", r.how.Name, r.s.Losses)
	}
	r.quit() // what was asked cannot be answered any more
	r.wait(ctx)
	r.problem = nil
	var err error
	if r.items, err = r.t.Items(ctx); err != nil {
		return err
	}
	r.t.Notice("The sandbox was stopped, and " + r.how.Name + " with it. It is started again.")
	return opens{r}.start(ctx)
}

// talk exchanges messages with the program until the turn is over.
func (r *run) talk(ctx context.Context) error {
	done := ctx.Done()
	r.heard = time.Now()
	clock := time.NewTimer(0)
	defer clock.Stop()
	r.watch()
	for !r.over && r.problem == nil {
		if err := r.flush(ctx); err != nil {
			return err
		}
		clock.Reset(r.left(r.patience()))
		select {
		case in := <-r.conn.reads():
			r.take(in)
		case w := <-r.conn.written():
			r.wrote(w)
		case a := <-r.answers:
			asks{r}.answered(a)
		case <-clock.C:
			r.silent(ctx)
		case <-done:
			if r.t.Continues() {
				return context.Cause(ctx)
			}
			if done = nil; r.s.Limit == "" {
				r.cancel()
			}
		}
		r.watch()
	}
	if r.problem == nil && ctx.Err() != nil {
		r.problem = context.Cause(ctx)
	}
	if r.problem != nil {
		return r.problem
	}
	return r.t.Stored(context.WithoutCancel(ctx))
}

// flush connects, unless the person is waited for, and has the program given what is for it once that is stored.
func (r *run) flush(ctx context.Context) error {
	if r.conn == nil && (len(r.s.Asked) == 0 || r.s.Outbox != "") {
		c, err := r.d.connect(ctx, r)
		if err != nil {
			return err
		}
		r.conn = c
		r.heard = time.Now()
	}
	if r.conn == nil {
		return nil
	}
	write := r.s.Outbox != "" && !r.conn.writing
	forget := r.s.Output-r.s.Acked > ackEvery && !r.conn.acking
	if !write && !forget {
		return nil
	}
	if err := r.t.Stored(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if write {
		r.conn.write(r.s.Outbox)
	}
	if forget {
		r.conn.ack(r.s.Output)
	}
	return nil
}

// patience is how long to wait for the program.
func (r *run) patience() time.Duration {
	limit := r.d.c.Silence
	since := r.heard
	switch {
	case !r.cancelled.IsZero():
		limit, since = r.d.c.Obey, r.cancelled
	case len(r.s.Asked) > 0 && r.conn == nil:
		return r.d.c.Silence // nothing happens without an answer
	case len(r.s.Asked) > 0:
		limit = r.d.c.Quiet
	case !r.prompting():
		limit = r.d.c.Answer
	}
	return max(limit-time.Since(since), 0)
}

// silent ends what has taken too long.
func (r *run) silent(ctx context.Context) {
	switch {
	case r.patience() > 0: // not yet
	case !r.cancelled.IsZero():
		r.problem = cmp.Or(context.Cause(ctx), errLost) // errLost: a limit has stopped it, and says so in its place
	case len(r.s.Asked) > 0 && r.conn != nil && r.s.Outbox == "":
		r.disconnect()
	case len(r.s.Asked) > 0:
		r.heard = time.Now()
	case r.prompting():
		r.problem = fault.New(fault.Timeout, "%s has written nothing for %s, and was ended. Resume to continue.", r.how.Name, words(r.d.c.Silence))
	default:
		r.problem = fault.New(fault.Timeout, "%s does not answer: nothing came for %s.%s", r.how.Name, words(r.d.c.Answer), r.complaint())
	}
}

// words writes a duration as people say it.
func words(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

// take takes in what the program wrote.
func (r *run) take(in read) {
	r.heard = time.Now()
	r.together(func() {
		for _, line := range in.lines {
			if r.problem == nil {
				r.line(line)
			}
		}
		r.s.Output += int64(in.bytes)
	})
	switch {
	case in.err == nil || r.over || r.problem != nil:
	case in.err == io.EOF:
		r.problem = r.exited()
	case fault.Is(in.err, fault.NotFound):
		r.problem = errLost
	default:
		r.problem = in.err
	}
}

// exited says how the program has ended.
func (r *run) exited() error {
	code, signal := r.conn.pipe.Exit()
	end := "with exit code " + itoa(code)
	if signal != 0 {
		end = "by signal " + itoa(signal)
	}
	when := "before its turn began"
	if r.prompting() {
		when = "in the middle of its turn"
	}
	return fault.New(fault.Unavailable, "%s ended %s, %s.%s", r.how.Name, when, end, r.complaint())
}

// complaint is what the program last wrote to stderr, as a sentence.
func (r *run) complaint() string {
	const most = 500
	if r.conn == nil {
		return ""
	}
	defer time.AfterFunc(endLimit, r.conn.cancel).Stop() // the link may be away
	b, err := r.conn.pipe.Stderr()
	if err != nil || len(b) == 0 {
		return ""
	}
	return " It last wrote: " + text.OneLine(string(b[max(len(b)-most, 0):]), most)
}

// line takes one line in.
func (r *run) line(line []byte) {
	m, err := r.s.Peer.Take(line)
	if err != nil {
		r.problem = err
		return
	}
	switch m.Kind {
	case acp.Response:
		opens{r}.response(m)
	case acp.Request:
		r.request(m)
	case acp.Notification:
		if u, known := acp.ReadUpdate(m.Body); known && m.Method == acp.SessionUpdate {
			shows{r}.update(u)
		}
	}
}

// request takes a request of the agent.
func (r *run) request(m acp.Message) {
	stopped := !r.cancelled.IsZero()
	switch {
	case m.Method == acp.RequestPermission && stopped:
		r.reply(r.s.Peer.Answer(m.ID, acp.Selected("")))
	case m.Method == acp.RequestPermission:
		asks{r}.permission(m)
	case m.Method == acp.Elicit && stopped:
		r.reply(r.s.Peer.Answer(m.ID, acp.Declined(true)))
	case m.Method == acp.Elicit:
		asks{r}.form(m)
	default:
		r.reply(r.s.Peer.Refuse(m.ID, acp.MethodNotFound, "Method not found"))
	}
}

// maxOwed bounds the answers that a program does not read.
const maxOwed = 1 << 20

// reply puts an answer to the agent into the outbox.
func (r *run) reply(line []byte) {
	r.put(line)
	if r.owed += len(line); r.owed > maxOwed {
		r.problem = fault.New(fault.Unavailable, "%s asks on and on, and does not read the answers.", r.how.Name)
	}
}

// call puts a call into the outbox.
func (r *run) call(method string, params any) {
	line, _ := r.s.Peer.Call(method, params)
	r.put(line)
}

// put puts a line into the outbox, where remember adds it.
func (r *run) put(line []byte) { r.lines = append(r.lines, line...) }

// prompting reports whether the agent works on the person's message.
func (r *run) prompting() bool { return r.calls(acp.Prompt) }

func (r *run) calls(method string) bool {
	for _, m := range r.s.Peer.Calls {
		if m == method {
			return true
		}
	}
	return false
}

// cancel tells the agent to stop.
func (r *run) cancel() {
	r.cancelled = time.Now()
	if !r.prompting() { // it has not begun
		r.cancelled = r.cancelled.Add(-r.d.c.Obey)
		return
	}
	r.together(func() {
		for _, a := range r.s.Asked {
			r.put(r.s.Peer.Answer(a.ID, a.lapsed()))
		}
		r.s.Asked = nil
		r.put(r.s.Peer.Notify(acp.Cancel, acp.CancelParams(r.s.Session)))
	})
}

// drop ends the program. It is forgotten also when it cannot be ended now.
func (r *run) drop(ctx context.Context) {
	r.disconnect()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	c := r.t.Conversation()
	err := r.d.c.Programs.End(ending, c, prefix+c.ID+"-")
	r.together(func() {
		if r.calls(acp.LoadSession) && ctx.Err() == nil {
			r.s.Session = "" // it cannot be loaded, and would not be the next time either
		}
		r.forget()
	})
	if err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
		r.t.Notice(r.how.Name + " could not be ended: " + fault.Message(err))
	}
}
