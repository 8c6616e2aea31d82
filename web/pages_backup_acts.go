package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/backup"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// Times that a form waits for what it has begun, so that what is refused at once can be said beside the form.
const (
	restoreTime = time.Second
	newTime     = 9 * time.Second // at most: the page follows as soon as there is a sandbox
)

// submitBackUp begins a backup. The page's stream shows its progress.
func (s *backupFormHandlers) submitBackUp(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	b, _, err := s.cfg.Backups.Begin(h.Sandbox(), backup.Options{Live: r.form("live") != "", Root: r.form("root") != "", Repository: r.form("repository")})
	r.object = b.ID
	return r.back(backupsURL(h.Name())), err
}

// about says in a few words which backup a sheet is about.
func (s *backupFormHandlers) about(b backup.Backup) views.AboutBackup {
	return views.AboutBackup{ID: b.ID, Sandbox: b.Sandbox, Made: timeOf(b.Created, s.cfg.Now()), Size: text.Size(b.Size), Files: amount(b.Stats.Files, "file"), Root: b.Root, Repository: b.Repository}
}

// boxOf gives the sandbox that a backup was made of.
func (s *backupFormHandlers) boxOf(ctx context.Context, r *request, b backup.Backup) (access.Handle, error) {
	h, err := s.resolve(ctx, r.who, b.Sandbox)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) || err == nil && h.ID() != b.SandboxID {
		return access.Handle{}, fault.New(fault.NotFound, "The sandbox %s that this backup was made of is deleted. Make a new sandbox from the backup instead.", b.Sandbox)
	}
	return h, err
}

// pageRestore asks before a backup is restored; a script gets the question as a sheet.
func (s *backupFormHandlers) pageRestore(ctx context.Context, r *request) (templ.Component, error) {
	return s.restoreForm(ctx, r, views.RestoreBackup{SaveFirst: true})
}

func (s *backupFormHandlers) restoreForm(ctx context.Context, r *request, v views.RestoreBackup) (templ.Component, error) {
	b, err := s.backups.backup(r)
	if err != nil {
		return nil, err
	}
	h, err := s.boxOf(ctx, r, b)
	if err != nil {
		return nil, err
	}
	v.About, v.Lost, v.Next = s.about(b), replaced(h.Sandbox()), r.origin(backupsURL(h.Name()))
	if b.Root {
		v.Lost = slices.Insert(v.Lost, 1, "What is installed or changed outside of its home is replaced, too, unless only the home is restored.")
	}
	if r.byScript() {
		return views.RestoreBackupSheet(v), nil
	}
	v.Frame = s.frame(r, "Restore a backup of "+b.Sandbox, "backups")
	return views.RestoreBackupPage(v), nil
}

// replaced says what a restore does to a sandbox in its present state.
func replaced(box sandbox.Sandbox) []string {
	lost := []string{"Everything in the home of " + box.Name + " (/home/agent) is replaced."}
	switch box.State {
	case sandbox.Stopped, sandbox.Asleep, sandbox.Sleeping, sandbox.Failed:
		return lost
	case sandbox.Frozen:
		return append(lost, "The sandbox is stopped: its programs and terminals end. It is asleep afterwards.")
	}
	return append(lost, "The sandbox is stopped meanwhile, so its programs and terminals end. It is started again afterwards.")
}

// submitRestore begins to restore a backup, and leads to the sandbox's page, which shows its progress.
func (s *backupFormHandlers) submitRestore(ctx context.Context, r *request) (string, error) {
	b, err := s.backups.backup(r)
	if err != nil {
		return "", err
	}
	h, err := s.boxOf(ctx, r, b)
	if err != nil {
		return "", err
	}
	r.about, r.object = h.Sandbox(), b.ID
	a, err := s.cfg.Backups.Archive(b.ID)
	if err != nil {
		return "", err
	}
	a.HomeOnly = r.form("home_only") != ""
	waiting, cancel := context.WithTimeout(ctx, restoreTime)
	defer cancel()
	err = s.cfg.Backups.Restore(waiting, h.Sandbox(), a, r.form("save_first") != "")
	if err != nil && errors.Is(err, waiting.Err()) { // it is under way
		err = nil
	}
	return sandboxURL(h.Name()), err
}

func (s *backupFormHandlers) againRestore(ctx context.Context, r *request, cause error) (templ.Component, error) {
	return s.restoreForm(ctx, r, views.RestoreBackup{SaveFirst: r.form("save_first") != "", HomeOnly: r.form("home_only") != "", Fault: fault.Message(cause)})
}

// submitCancelRestore cuts off what is being restored to a sandbox.
func (s *backupFormHandlers) submitCancelRestore(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	return r.back(sandboxURL(h.Name())), s.cfg.Backups.CancelRestore(h.Ref())
}

// submitDismissRestore takes the note about the last restore away.
func (s *backupFormHandlers) submitDismissRestore(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	s.cfg.Backups.ForgetProblem(h.ID())
	return r.back(backupsURL(h.Name())), nil
}

// pageNewFrom asks for the name of a new sandbox made from a backup; a script gets the form as a sheet.
func (s *backupFormHandlers) pageNewFrom(ctx context.Context, r *request) (templ.Component, error) {
	b, err := s.backups.backup(r)
	if err != nil {
		return nil, err
	}
	name, err := s.freeName(ctx, b.Sandbox)
	return s.newFromForm(r, b, views.NewFromBackup{Name: views.Field{Value: name}}), err
}

func (s *backupFormHandlers) newFromForm(r *request, b backup.Backup, v views.NewFromBackup) templ.Component {
	v.About, v.Template, v.Next = s.about(b), b.Template, r.origin(backupsPath)
	if r.byScript() {
		return views.NewFromBackupSheet(v)
	}
	v.Frame = s.frame(r, "New sandbox from a backup", "backups")
	return views.NewFromBackupPage(v)
}

// triedNames bounds the names that are tried for a new sandbox.
const triedNames = 50

// freeName suggests the name of a sandbox made from a backup: that of the old one, or the same with a number. It is "" when they are all
// taken.
func (s *backupFormHandlers) freeName(ctx context.Context, old string) (string, error) {
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Query: old})
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, box := range boxes {
		taken[box.Name] = true
	}
	for n := range triedNames {
		name := old
		if n > 0 {
			name = fmt.Sprintf("%s-%d", old, n+1)
		}
		if !taken[name] && hostname.CheckName(name) == nil {
			return name, nil
		}
	}
	return "", nil
}

// submitNewFrom makes a sandbox from a backup, and leads to its page as soon as there is one.
func (s *backupFormHandlers) submitNewFrom(ctx context.Context, r *request) (string, error) {
	b, err := s.backups.backup(r)
	if err != nil {
		return "", err
	}
	ask := sandbox.Request{Name: r.field("name"), Owner: r.who.User.ID}
	if err := hostname.CheckName(ask.Name); err != nil {
		return "", err
	}
	if _, err := s.resolve(ctx, r.who, ask.Name); err == nil {
		return "", fault.Field("name", "There is already a sandbox with this name. Choose another one.")
	}
	a, err := s.cfg.Backups.Archive(b.ID)
	if err != nil {
		return "", err
	}
	r.about, r.object = sandbox.Sandbox{Name: ask.Name, Owner: ask.Owner}, b.Template
	if box, err := s.restoreNew(ctx, ask, a); err != nil {
		return "", err
	} else if box.ID != "" {
		r.about = box
	}
	return sandboxURL(ask.Name), nil
}

// restoreNew begins to make a sandbox from an archive, and gives it as soon as it is there.
func (s *backupFormHandlers) restoreNew(ctx context.Context, ask sandbox.Request, a *backup.Archive) (made sandbox.Sandbox, err error) {
	ctx, cancel := context.WithTimeout(ctx, newTime)
	boxes := s.cfg.Sandboxes.Subscribe()
	var watching sync.WaitGroup
	var seen sandbox.Sandbox
	watching.Go(func() {
		for e := range boxes.C {
			if e.Sandbox.Name == ask.Name && e.Sandbox.Owner == ask.Owner && !e.Deleted {
				seen = e.Sandbox
				cancel()
			}
		}
	})
	made, err = s.cfg.Backups.RestoreNew(ctx, ask, a)
	underway := err != nil && errors.Is(err, ctx.Err())
	boxes.Close()
	watching.Wait()
	cancel()
	if underway {
		return seen, nil
	}
	if fault.Is(err, fault.Conflict) {
		err = &fault.Error{Kind: fault.Conflict, Field: "name", Message: fault.Message(err), Err: err}
	}
	return made, err
}

func (s *backupFormHandlers) againNewFrom(_ context.Context, r *request, cause error) (templ.Component, error) {
	b, err := s.backups.backup(r)
	if err != nil {
		return nil, err
	}
	v := views.NewFromBackup{}
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name}, cause)
	return s.newFromForm(r, b, v), nil
}

// pageDeleteBackup asks before a backup is deleted; a script gets the question as a sheet.
func (s *backupFormHandlers) pageDeleteBackup(ctx context.Context, r *request) (templ.Component, error) {
	b, err := s.backups.backup(r)
	if err != nil {
		return nil, err
	}
	v := views.DeleteBackup{About: s.about(b), Next: r.origin(backupsPath)}
	if _, err := s.boxOf(ctx, r, b); fault.Is(err, fault.NotFound) {
		v.Gone = true
	}
	if r.byScript() {
		return views.DeleteBackupSheet(v), nil
	}
	v.Frame = s.frame(r, "Delete a backup of "+b.Sandbox, "backups")
	return views.DeleteBackupPage(v), nil
}

// submitDeleteBackup deletes a backup, or cancels one that is being made.
func (s *backupFormHandlers) submitDeleteBackup(_ context.Context, r *request) (string, error) {
	b, err := s.backups.backup(r)
	if err == nil {
		err = s.cfg.Backups.Delete(b.ID)
	}
	return r.back(backupsPath), err
}
