package idle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Bounds on holds. A hold ends by itself, so that a crashed agent keeps nothing up for ever; clients renew it.
const (
	maxHolds    = 32 // of one sandbox
	maxHoldText = 200
	minTTL      = 10 * time.Second
	maxTTL      = 7 * 24 * time.Hour
)

// holdLimit is how long one look or write of the store may take.
const holdLimit = 5 * time.Second

// adrift is the age from which a hold that is not in the store is believed to be gone from it, and not on its way.
const adrift = time.Minute

// Hold declares that a sandbox is in use until Expires.
type Hold = sandbox.Hold

// Holds are the uses that people and agents declare: "training, two more hours". They outlive a restart of sandboxd, end
// by themselves, and go with their sandbox. A hold wakes nothing. Safe for concurrent use.
type Holds struct {
	store sandbox.HoldStore
	t     *Tracker
}

// NewHolds makes the holds. It does no I/O: Load does.
func NewHolds(store sandbox.HoldStore, t *Tracker) *Holds {
	return &Holds{store: store, t: t}
}

// Load reads the stored holds, once at the start of sandboxd and before the reaper runs.
func (h *Holds) Load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, holdLimit)
	defer cancel()
	stored, err := h.store.Holds(ctx)
	if err != nil {
		return fmt.Errorf("load holds: %w", err)
	}
	for _, one := range stored {
		h.t.hold(one)
	}
	return nil
}

// Place declares s in use for ttl, by the user with the id by. Invalid with the field ("reason": 1 to 200 bytes of text,
// "ttl": 10 s to 7 d), Conflict when s is being deleted or has 32 holds, NotFound when it is gone.
func (h *Holds) Place(ctx context.Context, s sandbox.Sandbox, by, reason string, ttl time.Duration) (Hold, error) {
	reason, err := checkReason(reason)
	if err == nil {
		err = checkTTL(ttl)
	}
	if err != nil {
		return Hold{}, err
	}
	if s.State == sandbox.Deleting {
		return Hold{}, fault.New(fault.Conflict, "%s is being deleted.", s.Name)
	}
	now := kept(time.Now())
	one := Hold{ID: sandbox.NewID(), SandboxID: s.ID, Owner: by, Reason: reason, Created: now, Expires: now.Add(ttl)}
	if !h.t.hold(one) {
		return Hold{}, fault.New(fault.Conflict, "%s has %d holds already. Renew or revoke one of them.", s.Name, maxHolds)
	}
	if err := h.put(ctx, one); err != nil {
		h.t.unhold(one)
		return Hold{}, fmt.Errorf("place a hold on %s: %w", s.Name, err)
	}
	return one, nil
}

// Renew lets a hold of s end ttl from now. Invalid as for Place; NotFound when there is none of that id, any more.
func (h *Holds) Renew(ctx context.Context, s sandbox.Sandbox, id string, ttl time.Duration) (Hold, error) {
	if err := checkTTL(ttl); err != nil {
		return Hold{}, err
	}
	before, err := h.find(s, id)
	if err != nil {
		return Hold{}, err
	}
	one := before
	one.Expires = kept(time.Now()).Add(ttl)
	if !h.t.rehold(one) {
		return Hold{}, noHold(s)
	}
	if err := h.put(ctx, one); err != nil {
		h.t.rehold(before)
		return Hold{}, fmt.Errorf("renew a hold on %s: %w", s.Name, err)
	}
	if _, err := h.find(s, id); err != nil { // revoked meanwhile: the store must not know it either
		return Hold{}, errors.Join(err, h.remove(ctx, id))
	}
	return one, nil
}

// List gives the holds of s that have not expired, the oldest first.
func (h *Holds) List(_ context.Context, s sandbox.Sandbox) ([]Hold, error) {
	return h.t.holdsOf(s.ID), nil
}

// Revoke ends a hold of s now. NotFound when there is none of that id, any more.
func (h *Holds) Revoke(ctx context.Context, s sandbox.Sandbox, id string) error {
	one, err := h.find(s, id)
	if err != nil {
		return err
	}
	h.t.unhold(one) // first: a Renew at the same time then sees that it must not stay in the store
	if err := h.remove(ctx, id); err != nil {
		h.t.hold(one)
		return fmt.Errorf("revoke a hold on %s: %w", s.Name, err)
	}
	return nil
}

// Sweep removes expired holds from the store, and from memory those that were deleted with their sandbox. The reaper
// calls it from time to time.
func (h *Holds) Sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, holdLimit)
	defer cancel()
	asked := time.Now()
	if err := h.store.DeleteExpiredHolds(ctx, asked); err != nil {
		return fmt.Errorf("sweep holds: %w", err)
	}
	stored, err := h.store.Holds(ctx)
	if err != nil {
		return fmt.Errorf("sweep holds: %w", err)
	}
	there := make(map[string]bool, len(stored))
	for _, one := range stored {
		there[one.ID] = true
	}
	h.t.keepHolds(func(one Hold) bool { return there[one.ID] || asked.Sub(one.Created) < adrift })
	return nil
}

func (h *Holds) find(s sandbox.Sandbox, id string) (Hold, error) {
	for _, one := range h.t.holdsOf(s.ID) {
		if one.ID == id {
			return one, nil
		}
	}
	return Hold{}, noHold(s)
}

func noHold(s sandbox.Sandbox) error {
	return fault.New(fault.NotFound, "%s has no such hold. It may have expired; place a new one.", s.Name)
}

func (h *Holds) put(ctx context.Context, one Hold) error {
	ctx, cancel := context.WithTimeout(ctx, holdLimit)
	defer cancel()
	return h.store.PutHold(ctx, one)
}

func (h *Holds) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdLimit)
	defer cancel()
	return h.store.DeleteHold(ctx, id)
}

// kept gives a time as the store gives it back.
func kept(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func checkReason(reason string) (string, error) {
	if len(reason) > maxHoldText {
		return "", fault.Field("reason", "The reason is longer than %d bytes. Say it more briefly.", maxHoldText)
	}
	if reason = text.Trim(text.OneLine(reason, maxHoldText)); reason == "" {
		return "", fault.Field("reason", "Say why it must stay awake, in at most %d bytes.", maxHoldText)
	}
	return reason, nil
}

func checkTTL(ttl time.Duration) error {
	if ttl < minTTL || ttl > maxTTL {
		return fault.Field("ttl", "A hold lasts between 10s and 7d, and can be renewed. Give such a duration.")
	}
	return nil
}
