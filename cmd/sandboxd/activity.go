package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/backup"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sqlite"
)

func activityPath(c *Config) string { return filepath.Join(c.Data, "activity.db") }

// activityKeep gives how long activity is kept.
func (c *Config) activityKeep() (time.Duration, error) {
	keep, err := catalog.ParseAfter("activity-keep", c.ActivityKeep)
	if err != nil || keep <= 0 {
		return 0, fault.Field("activity-keep", "--activity-keep is %.40q; it must be a duration from 1s to 365d, such as \"48h\" or \"180d\".", c.ActivityKeep)
	}
	return time.Duration(keep), nil
}

// newActivity puts together what records who did what.
func (a *app) newActivity(ctx context.Context) error {
	keep, err := a.config.activityKeep()
	if err != nil {
		return err
	}
	store := sqlite.OpenActivity(ctx, activityPath(a.config), a.log)
	a.closers = append(a.closers, store.Close)
	a.activity = activity.New(activity.Config{Store: store, Keep: keep, Log: a.log})
	return nil
}

// runActivity writes what is recorded until end is called, which must be after all that records has ended: it stands in no group with it.
func (a *app) runActivity(ctx context.Context) (end func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { _ = a.activity.Run(ctx) }) // it gives no error
	return func() { stop(); running.Wait() }
}

// record records what happens to a sandbox without a request for that. A request is recorded once, by web, as it was answered: so a
// start by its owner is no wake here, and only what a request sets off on its way to something else is.
func (a *app) record(ctx context.Context, act sandbox.Action, s sandbox.Sandbox) (done func(error)) {
	who, _ := activity.CallerOf(ctx) // without a request there is none, and its Via is empty
	itself := activity.Caller{Via: activity.Itself}
	var e activity.Entry
	switch {
	case act == sandbox.ActionFail:
		e = itself.Entry(activity.SandboxFail).Ended(fault.New(fault.Unavailable, "%s", s.Problem))
	case act == sandbox.ActionUpdate && who.Via == "":
		e = itself.Entry(activity.SandboxUpdate)
	case act == sandbox.ActionUpdate: // the request has only asked for it, for many sandboxes perhaps
		e = who.Entry(activity.SandboxUpdate)
	case act == sandbox.ActionWake && who.Via == "":
		e = itself.Entry(activity.SandboxWake)
	case act == sandbox.ActionWake && !asksForWake[who.Action]:
		e = who.Entry(activity.SandboxWake)
	case act == sandbox.ActionFreeze && who.Action != sleepOne:
		e = itself.Entry(activity.SandboxFreeze) // nobody asks for this
	case act == sandbox.ActionSleep && who.Action == sleepMany:
		e = who.Entry(activity.SandboxSleep)
	case act == sandbox.ActionSleep && who.Action != sleepOne:
		e = itself.Entry(activity.SandboxSleep)
	default:
		return func(error) {}
	}
	e.SandboxID, e.Sandbox, e.Owner = s.ID, s.Name, s.Owner
	return func(err error) {
		if e.Via == activity.Itself && fault.Is(err, fault.Conflict) { // it was used again meanwhile, so nothing happened
			return
		}
		if err != nil {
			e = e.Ended(err)
		}
		a.activity.Add(e)
	}
}

// recordBackup records that a backup failed which a person asked for: the request for it was answered when it began. What schedules do is
// in the record of their runs.
func recordBackup(log *activity.Log, b backup.Backup) {
	if b.Schedule != "" {
		return
	}
	e := activity.Caller{Via: activity.Itself}.Entry(activity.BackupFail)
	e.Outcome, e.Problem, e.SandboxID, e.Sandbox, e.Owner, e.Object = activity.Failed, b.Problem, b.SandboxID, b.Sandbox, b.Owner, b.ID
	log.Add(e)
}

// recordSnapshot records that work on a snapshot of a sandbox has failed, when the request for it was answered before.
func recordSnapshot(log *activity.Log, of sandbox.Sandbox, err error) {
	e := activity.Caller{Via: activity.Itself}.Entry(activity.SnapshotFail)
	e.Outcome, e.Problem, e.SandboxID, e.Sandbox, e.Owner = activity.Failed, fault.Message(err), of.ID, of.Name, of.Owner
	log.Add(e)
}

// recordedEngine has what is wrong with a repository recorded when a check finds it.
type recordedEngine struct {
	repository.Engine
	log *activity.Log
}

// Check implements repository.Engine.
func (r recordedEngine) Check(ctx context.Context, a repository.Access, contents bool, progress func(repository.Progress)) (repository.Checked, error) {
	found, err := r.Engine.Check(ctx, a, contents, progress)
	e := activity.Caller{Via: activity.Itself}.Entry(activity.RepositoryFail)
	e.Outcome, e.Object = activity.Failed, a.Name
	switch {
	case err != nil && ctx.Err() == nil:
		e.Problem = fault.Message(err)
	case err == nil && len(found.Damaged) > 0:
		e.Problem = fmt.Sprintf("Backups that cannot be restored: %d of %d.", len(found.Damaged), found.Backups)
	default:
		return found, err
	}
	r.log.Add(e)
	return found, err
}

// asksForWake are the actions of requests that ask for a sandbox to run.
var asksForWake = map[activity.Action]bool{"sandbox.create": true, "sandbox.start": true, "sandbox.restart": true}

// The actions of requests that ask for sleep: of one sandbox, and of many, of which each is recorded.
const (
	sleepOne  activity.Action = activity.SandboxSleep
	sleepMany activity.Action = "host.sleep"
)
