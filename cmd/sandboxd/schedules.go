package main

import (
	"context"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/auth"
	"sandboxd/internal/backup"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
)

// troubleLimit bounds the look at the sandboxes that troubles are about, which are in memory.
const troubleLimit = 2 * time.Second

// newSchedules puts together what makes backups at set times.
func newSchedules(a *app) *schedule.Service {
	return schedule.New(schedule.Config{
		Store: a.db.Schedules(), Backups: a.backups, Tester: backup.NewTester(a.backups), Sandboxes: a.manager, Keep: a.backups.Keep, Log: a.log,
		Admin: isAdmin(a.accounts), Template: hasTemplate(a.catalog), Repository: hasRepository(a.repositories),
	})
}

// isAdmin reports whether a user is one; not of one who is deleted.
func isAdmin(accounts *auth.Service) func(ctx context.Context, id string) (bool, error) {
	return func(ctx context.Context, id string) (bool, error) {
		u, err := accounts.User(ctx, id)
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return err == nil && u.Role == auth.Admin, err
	}
}

// hasTemplate reports whether there is a template of a name, broken or not.
func hasTemplate(templates *catalog.Catalog) func(name string) bool {
	return func(name string) bool {
		_, err := templates.Template(name)
		return !fault.Is(err, fault.NotFound)
	}
}

// hasRepository reports whether there is a backup repository of a name, reachable or not.
func hasRepository(places *repository.Service) func(name string) bool {
	return func(name string) bool {
		_, err := places.Repository(name)
		return err == nil
	}
}

// troubleKinds are the alerts of what is wrong with schedules.
var troubleKinds = map[schedule.TroubleSort]alert.Kind{
	schedule.Failing: alert.BackupFailed, schedule.Overdue: alert.BackupMissed, schedule.Unrestored: alert.BackupTest,
}

// backupTroubles gives what is wrong with schedules, for alerts.
func backupTroubles(a *app) []alert.BackupTrouble {
	found := a.schedules.Troubles()
	if len(found) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), troubleLimit)
	defer cancel()
	boxes, _ := a.alerting.sandboxes(ctx) // without them no alert is judged
	return troublesOf(found, boxes)
}

// troublesOf says which sandboxes it is about.
func troublesOf(found []schedule.Trouble, boxes []sandbox.Sandbox) (list []alert.BackupTrouble) {
	byID := make(map[string]sandbox.Sandbox, len(boxes))
	for _, b := range boxes {
		byID[b.ID] = b
	}
	for _, t := range found {
		target := alert.Target{Owner: t.Schedule.Owner, Template: t.Schedule.Target.Template, Part: t.Schedule.Name}
		if b, ok := byID[t.SandboxID]; ok {
			target.SandboxID, target.Sandbox, target.Owner, target.Template = b.ID, b.Name, b.Owner, b.Spec.Template
		} else if t.SandboxID != "" {
			continue // it was deleted
		}
		list = append(list, alert.BackupTrouble{Kind: troubleKinds[t.Sort], Target: target, Text: t.Text})
	}
	return list
}
