package files

import (
	"context"
	"io"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
)

// transfer is content on its way, from Open to end. It ends when the guest moves nothing for a while.
type transfer struct {
	ctx    context.Context // ends with it, for the cause that it has
	guest  access.Guest
	owner  string // of the sandbox
	cancel context.CancelCauseFunc
	end    func()
	limit  time.Duration
}

// begin opens a sandbox for a transfer. The caller must call end, which may be called more than once.
func (s *Service) begin(ctx context.Context, h access.Handle, doing string, archive bool) (*transfer, error) {
	leave, err := enter(&s.transfers, h, maxTransfers, "transfers of files")
	if err != nil {
		return nil, err
	}
	t := &transfer{limit: s.stall}
	ends := []func(){leave}
	t.end = sync.OnceFunc(func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	})
	if archive {
		leave, err := enter(&s.archives, h, maxArchives, "archives")
		if err != nil {
			t.end()
			return nil, err
		}
		ends = append(ends, leave)
	}
	session, err := open(ctx, h, doing)
	if err != nil {
		t.end()
		return nil, err
	}
	t.guest, t.owner = session.Guest, session.Sandbox().Owner
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	ends = append(ends, session.Release, func() { t.cancel(nil) })
	return t, nil
}

// errStalled says that nothing has moved for too long.
var errStalled = fault.New(fault.Timeout, "The sandbox moved no byte for a minute, so the transfer was ended.")

// from gives a reader of what the guest sends, which ends the transfer when nothing comes for too long.
func (t *transfer) from(r io.Reader) *patient {
	p := &patient{r: r, ctx: t.ctx, limit: t.limit}
	p.timer = time.AfterFunc(t.limit, func() { t.cancel(errStalled) })
	p.timer.Stop()
	return p
}

// patient waits for a guest, for so long.
type patient struct {
	r     io.Reader
	ctx   context.Context
	limit time.Duration
	timer *time.Timer
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	p.timer.Reset(p.limit)
	n, err := p.r.Read(b)
	p.timer.Stop()
	if err != nil && err != io.EOF {
		err = why(p.ctx, err)
	}
	return n, err
}

// to gives a reader of what goes to the guest, which ends the transfer when the guest does not come for more for too long.
// The time that r takes is not counted. The caller must call rest when all is over.
func (t *transfer) to(r io.Reader) *pressing {
	p := &pressing{r: r, limit: t.limit}
	p.timer = time.AfterFunc(t.limit, func() { t.cancel(errStalled) })
	return p
}

// pressing counts the time between two reads.
type pressing struct {
	r     io.Reader
	limit time.Duration
	timer *time.Timer
	err   error // of r, but for its end
}

// Read implements io.Reader.
func (p *pressing) Read(b []byte) (int, error) {
	p.timer.Stop()
	n, err := p.r.Read(b)
	p.timer.Reset(p.limit)
	if err != nil && err != io.EOF {
		p.err = err
	}
	return n, err
}

func (p *pressing) rest() { p.timer.Stop() }

// why gives the cause for which ctx ended, where it has one, and err otherwise.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
