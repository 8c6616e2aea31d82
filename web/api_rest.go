package web

import (
	"context"
	"net/http"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// restShape is what programs see of when a sandbox is put to rest and of what keeps it awake.
type restShape struct {
	FreezeAfter     string        `json:"freeze_after"`      // "15m" or "never": what counts now
	StopAfter       string        `json:"stop_after"`        // likewise
	FreezeAfterFrom string        `json:"freeze_after_from"` // who says so: "sandbox", "template" or "server"
	StopAfterFrom   string        `json:"stop_after_from"`
	AwakeBecause    []reasonShape `json:"awake_because"` // what uses it now, oldest first
	FreezesAt       *time.Time    `json:"freezes_at"`    // null when it is used, and when it never does
	StopsAt         *time.Time    `json:"stops_at"`
}

type reasonShape struct {
	Kind   string    `json:"kind"`
	Detail string    `json:"detail"`
	Since  time.Time `json:"since"`
}

func (s *sandboxHandlers) restShape(box sandbox.Sandbox) restShape {
	rest, outlook := s.cfg.Sandboxes.Resting(box), s.workspace.outlook(box)
	out := restShape{
		FreezeAfter: afterWord(rest.FreezeAfter), FreezeAfterFrom: rest.FreezeFrom,
		StopAfter: afterWord(rest.StopAfter), StopAfterFrom: rest.StopFrom,
		AwakeBecause: make([]reasonShape, 0, len(outlook.Because)),
		FreezesAt:    timeOrNull(outlook.FreezesAt), StopsAt: timeOrNull(outlook.StopsAt),
	}
	for _, r := range outlook.Because {
		out.AwakeBecause = append(out.AwakeBecause, reasonShape{Kind: string(r.Kind), Detail: r.Detail, Since: r.Since.UTC()})
	}
	return out
}

// restWish is what a request says of a sandbox's own times of rest: "15m", "never", or "" and "default" for the
// template's or the server's. Nil fields stay.
type restWish struct{ freezeAfter, stopAfter *string }

// says tells whether there is anything in it.
func (w restWish) says() bool { return w.freezeAfter != nil || w.stopAfter != nil }

// change reads what w says. Invalid about the field that cannot be read.
func (w restWish) change() (c sandbox.RestChange, err error) {
	if c.FreezeAfter, err = parseAfter("freeze_after", w.freezeAfter); err == nil {
		c.StopAfter, err = parseAfter("stop_after", w.stopAfter)
	}
	return c, err
}

func parseAfter(field string, text *string) (*catalog.After, error) {
	if text == nil {
		return nil, nil
	}
	after, err := catalog.ParseAfter(field, *text)
	return &after, err
}

// sleepBody says how deep a sandbox is to sleep.
type sleepBody struct {
	Frozen bool `json:"frozen"` // stand still with its memory kept, instead of stopping
}

// apiSleep puts a sandbox to rest now, whatever uses it. The next use wakes it.
func (s *sandboxHandlers) apiSleep(ctx context.Context, r *request, in sleepBody) (reply, error) {
	word, want := "asleep", sandbox.Asleep
	if in.Frozen {
		word, want = "frozen", sandbox.Frozen
	}
	return s.accept(ctx, r, word, s.rest(in.Frozen).of, func(w waiting, box sandbox.Sandbox) (reply, error) {
		if in.Frozen && box.State.Sleeps() {
			return reply{}, fault.New(fault.Conflict, "%s is asleep, and only a sandbox that is awake can be frozen. Wake it first.", box.Name)
		}
		return s.await(ctx, w, box, want, http.StatusOK)
	})
}

// rest makes the change that puts a sandbox to rest by a person's or a program's wish. It ends what Keep awake began.
func (s *sandboxHandlers) rest(frozen bool) change {
	return func(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
		do := s.cfg.Sandboxes.Sleep
		if frozen {
			do = s.cfg.Sandboxes.Freeze
		}
		again := s.cfg.Uses.Dismiss(ref.ID()) // before: a page that its end cuts off comes back at once
		box, err := do(ctx, ref, func() bool { again(); return true })
		if err == nil && (box.State == sandbox.Stopped || box.State == sandbox.Failed) {
			return box, fault.New(fault.Conflict, "%s does not run: it is %s, and use does not wake it.", ref.Name(), box.State)
		}
		if err == nil {
			if err := endKept(ctx, s.Server, box); err != nil { // it goes to sleep all the same
				s.log.Error("end what keeps it awake", "sandbox", box.Name, "err", err)
			}
		}
		return box, err
	}
}
