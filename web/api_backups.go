package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/auth"
	"sandboxd/internal/backup"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// backupShape is a backup as programs see it.
type backupShape struct {
	ID         string      `json:"id"`
	Sandbox    string      `json:"sandbox"` // its name then
	SandboxID  string      `json:"sandbox_id"`
	Owner      string      `json:"owner"`    // user name
	Schedule   string      `json:"schedule"` // id of the one that asked for it; "" for none
	State      string      `json:"state"`
	Root       bool        `json:"root"`
	Comparing  bool        `json:"comparing"`
	Checking   bool        `json:"checking"`
	Consistent bool        `json:"consistent"`
	Problem    string      `json:"problem"`
	CreatedAt  time.Time   `json:"created_at"`
	ExpiresAt  *time.Time  `json:"expires_at"` // null while its schedule decides that
	Size       int64       `json:"size"`       // bytes of the archive, so far
	Files      int64       `json:"files"`
	Folders    int64       `json:"folders"`
	Bytes      int64       `json:"bytes"` // of the home
	Lost       []lossShape `json:"lost"`
	MoreLost   int64       `json:"more_lost"`

	Repository  string `json:"repository"`  // "" for the backup folder
	Unreachable string `json:"unreachable"` // why that cannot be reached now
}

// lossShape is something of the home that is not in a backup or a snapshot.
type lossShape struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// lossShapes gives archive.Loss as programs see it.
func lossShapes[L ~struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}](list []L) []lossShape {
	out := make([]lossShape, 0, len(list))
	for _, l := range list {
		out = append(out, lossShape(l))
	}
	return out
}

func newBackupShape(ctx context.Context, r *request, names *owners, b backup.Backup) (backupShape, error) {
	owner, err := names.name(ctx, b.Owner)
	if err != nil {
		return backupShape{}, err
	}
	return backupShape{
		ID: b.ID, Sandbox: b.Sandbox, SandboxID: b.SandboxID, Owner: owner, Schedule: b.Schedule, State: string(b.State), Root: b.Root, Comparing: b.Comparing, Checking: b.Checking, Consistent: b.Still,
		Problem: b.Problem, CreatedAt: b.Created.UTC(), ExpiresAt: timeOrNull(b.Expires), Size: b.Size,
		Files: b.Stats.Files, Folders: b.Stats.Folders, Bytes: b.Stats.Bytes, Lost: lossShapes(b.Stats.Lost), MoreLost: b.Stats.MoreLost,
		Repository: b.Repository, Unreachable: unreachable(r, b),
	}, nil
}

type backupsShape struct {
	Backups []backupShape `json:"backups"`
}

// mayBackup says whether a caller may see a backup: one who might use its sandbox.
func mayBackup(who auth.Principal, b backup.Backup) bool { return who.May(b.Owner, b.SandboxID) }

// backup gives the backup that the path names. One that the caller may not see is one that is not there.
func (s *backupHandlers) backup(r *request) (backup.Backup, error) {
	id := r.param("id")
	b, err := s.cfg.Backups.Backup(id)
	if err == nil && !mayBackup(r.who, b) {
		err = backup.NotFound(id)
	}
	if err == nil {
		r.about = sandbox.Sandbox{ID: b.SandboxID, Name: b.Sandbox, Owner: b.Owner}
	}
	return b, err
}

// apiBackups lists the backups that the caller may see, the newest first: all, or those of ?sandbox= or in ?repository=.
func (s *backupHandlers) apiBackups(ctx context.Context, r *request, _ none) (reply, error) {
	of, in := r.query("sandbox"), r.query("repository")
	list := s.cfg.Backups.List(func(b backup.Backup) bool {
		return mayBackup(r.who, b) && (of == "" || of == b.Sandbox) && (in == "" || in == b.Repository)
	})
	out := backupsShape{Backups: make([]backupShape, 0, len(list))}
	names := newOwners(s.cfg.Accounts)
	for _, b := range list {
		shape, err := newBackupShape(ctx, r, names, b)
		if err != nil {
			return reply{}, err
		}
		out.Backups = append(out.Backups, shape)
	}
	return reply{body: out}, nil
}

func (s *backupHandlers) backupReply(ctx context.Context, r *request, status int, b backup.Backup) (reply, error) {
	shape, err := newBackupShape(ctx, r, newOwners(s.cfg.Accounts), b)
	return reply{status: status, body: shape, location: apiPrefix + "/backups/" + b.ID}, err
}

// apiBackup answers with one.
func (s *backupHandlers) apiBackup(ctx context.Context, r *request, _ none) (reply, error) {
	b, err := s.backup(r)
	if err != nil {
		return reply{}, err
	}
	out, err := s.backupReply(ctx, r, http.StatusOK, b)
	out.location = ""
	return out, err
}

// backupBody says how a backup is made.
type backupBody struct {
	Live       bool   `json:"live"`
	Root       bool   `json:"root"`
	Repository string `json:"repository"` // "" for the folder
}

// apiMakeBackup begins a backup: 202, 200 when it joins one that is being made, or with ?wait=ready 201 once it is made.
func (s *backupHandlers) apiMakeBackup(ctx context.Context, r *request, in backupBody) (reply, error) {
	w, err := r.waiting("ready")
	if err != nil {
		return reply{}, err
	}
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	b, begun, err := s.cfg.Backups.Begin(h.Sandbox(), backup.Options{Live: in.Live, Root: in.Root, Repository: in.Repository})
	if err != nil {
		return reply{}, err
	}
	r.object = b.ID
	if !w.asked && !begun {
		return s.backupReply(ctx, r, http.StatusOK, b)
	}
	if !w.asked {
		return s.backupReply(ctx, r, http.StatusAccepted, b)
	}
	waiting, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	if b, err = s.cfg.Backups.Wait(waiting, b.ID); err != nil {
		return reply{location: apiPrefix + "/backups/" + b.ID}, err
	}
	return s.backupReply(ctx, r, http.StatusCreated, b)
}

// apiDeleteBackup deletes a backup, or cancels one that is being made.
func (s *backupHandlers) apiDeleteBackup(_ context.Context, r *request, _ none) (reply, error) {
	b, err := s.backup(r)
	if err == nil {
		err = s.cfg.Backups.Delete(b.ID)
	}
	return reply{status: http.StatusNoContent}, err
}

// apiDownload makes a backup and answers with the archive: the way for a program that knows no other. Where it can be had again, in
// parts too, is in Content-Location. One that was made for a client who has left stays.
func (s *backupHandlers) apiDownload(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	if r.wantsHead() { // there is none yet
		return reply{status: http.StatusNoContent}, nil
	}
	live, liveErr := truth(r, "live")
	root, rootErr := truth(r, "root")
	if err := errors.Join(liveErr, rootErr); err != nil {
		return reply{}, err
	}
	b, _, err := s.cfg.Backups.Begin(h.Sandbox(), backup.Options{Live: live, Root: root})
	if err != nil {
		return reply{}, err
	}
	r.object = b.ID
	if b, err = s.cfg.Backups.Wait(ctx, b.ID); err != nil {
		return reply{}, err
	}
	r.head.Set("Content-Location", apiPrefix+"/backups/"+b.ID+"/archive")
	return reply{}, s.sendBackup(ctx, r, b.ID)
}

// apiArchive answers with the archive of a backup, or a part of it.
func (s *backupHandlers) apiArchive(ctx context.Context, r *request, _ none) (reply, error) {
	b, err := s.backup(r)
	if err != nil {
		return reply{}, err
	}
	return reply{}, s.sendBackup(ctx, r, b.ID)
}

// sendBackup answers with the file of a backup. It never changes, so its id is its ETag.
func (s *backupHandlers) sendBackup(ctx context.Context, r *request, id string) error {
	if b, err := s.cfg.Backups.Backup(id); err == nil && b.State == backup.Ready && b.Repository != "" {
		return s.sendStored(ctx, r, b)
	}
	f, b, err := s.cfg.Backups.Open(id)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, end := s.live.whileAllowed(ctx, r)
	defer end()
	ctl := http.NewResponseController(r.w)
	defer context.AfterFunc(ctx, func() { _ = ctl.SetWriteDeadline(time.Unix(1, 0)) })()
	r.guard()
	r.head.Set("Content-Type", "application/zstd")
	r.head.Set("Content-Disposition", attachment(backupFile(b)))
	r.head.Set("ETag", `"`+b.ID+`"`)
	r.head.Set("Cache-Control", "private, no-cache")
	http.ServeContent(steadyAnswer{r.w, steady{r.w, ctl, s.move}}, r.http, "", b.Created, f)
	return nil
}

// sendStored answers with a backup in a repository, made a file on its way: its size is not known, and no part of it can be had alone. An
// answer that is cut off is broken, not ended.
func (s *backupHandlers) sendStored(ctx context.Context, r *request, b backup.Backup) error {
	ctx, end := s.live.whileAllowed(ctx, r)
	defer end()
	ctl := http.NewResponseController(r.w)
	defer context.AfterFunc(ctx, func() { _ = ctl.SetWriteDeadline(time.Unix(1, 0)) })()
	r.guard()
	out := &storedAnswer{steady: steady{r.w, ctl, s.move}, begin: func() {
		r.head.Set("Content-Type", "application/zstd")
		r.head.Set("Content-Disposition", attachment(backupFile(b)))
		r.head.Set("ETag", `"`+b.ID+`"`)
		r.head.Set("Cache-Control", "private, no-cache")
	}}
	if r.wantsHead() {
		out.begin()
		return nil
	}
	err := s.cfg.Backups.Export(ctx, b.ID, out)
	if err != nil && out.begun {
		s.log.Warn("backup was not sent as a whole", "backup", b.ID, "error", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// storedAnswer is an answer that begins with the first byte of its body, so that it may be an error until then.
type storedAnswer struct {
	steady
	begin func()
	begun bool
}

// Write implements io.Writer.
func (a *storedAnswer) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun = true
		a.begin()
	}
	return a.steady.Write(p)
}

// steadyAnswer is an answer whose body a client must take now and then.
type steadyAnswer struct {
	http.ResponseWriter
	body steady
}

// Write implements http.ResponseWriter.
func (a steadyAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }

// backupFile is what a browser calls the file of a backup.
func backupFile(b backup.Backup) string {
	return b.Sandbox + "-" + b.Created.UTC().Format("2006-01-02-1504") + ".tar.zst"
}

// receiving adapts a request whose body may be an archive of any size.
func (s *backupHandlers) receiving(act func(ctx context.Context, r *request) (reply, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		defer r.end()
		if err := r.checkQuery(); err != nil {
			return err
		}
		ctx, end := s.live.whileAllowed(r.http.Context(), r)
		defer end()
		defer s.files.keepMoving(ctx, r)()
		out, err := act(ctx, r)
		if cause := context.Cause(ctx); err != nil && fault.KindOf(cause) == fault.Unauthenticated {
			return cause
		}
		if err != nil {
			return err
		}
		out.move = s.move
		return out.write(c)
	}
}

// archive gives the archive that a request brings, or the backup that ?backup= names.
func (s *backupHandlers) archive(ctx context.Context, r *request) (*backup.Archive, error) {
	homeOnly, err := truth(r, "home_only")
	if err != nil {
		return nil, err
	}
	a, err := s.wholeArchive(ctx, r, r.query("backup"))
	if err == nil {
		a.HomeOnly = homeOnly
	}
	return a, err
}

func (s *backupHandlers) wholeArchive(ctx context.Context, r *request, id string) (*backup.Archive, error) {
	if id == "" {
		return s.cfg.Backups.Receive(ctx, r.who.User.ID, r.http.Body)
	}
	b, err := s.cfg.Backups.Backup(id)
	if err == nil && !mayBackup(r.who, b) || fault.Is(err, fault.NotFound) {
		return nil, fault.Field("backup", "%s", fault.Message(backup.NotFound(id)))
	}
	if err != nil {
		return nil, err
	}
	return s.cfg.Backups.Archive(id)
}

// apiRestore makes the home of a sandbox what the archive says, and answers with the sandbox once that is done.
func (s *backupHandlers) apiRestore(ctx context.Context, r *request) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	saveFirst, err := truth(r, "save_first")
	if err != nil {
		return reply{}, err
	}
	a, err := s.archive(ctx, r)
	if err != nil {
		return reply{}, err
	}
	if err := s.cfg.Backups.Restore(ctx, h.Sandbox(), a, saveFirst); err != nil {
		return reply{}, err
	}
	box, err := h.Current(ctx)
	if err != nil {
		return reply{}, err
	}
	return s.sandboxes.sandboxReply(ctx, http.StatusOK, box)
}

// apiCancelRestore cuts off what is being restored to a sandbox.
func (s *backupHandlers) apiCancelRestore(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err == nil {
		err = s.cfg.Backups.CancelRestore(h.Ref())
	}
	return reply{status: http.StatusNoContent}, err
}

// apiRestoreNew makes a sandbox of an archive, and answers with it once it runs.
func (s *backupHandlers) apiRestoreNew(ctx context.Context, r *request) (reply, error) {
	if err := s.checkNewName(ctx, r); err != nil { // before all of an archive is sent
		return reply{}, err
	}
	a, err := s.archive(ctx, r)
	if err != nil {
		return reply{}, err
	}
	box, err := s.cfg.Backups.RestoreNew(ctx, sandbox.Request{
		Name: r.query("name"), Label: r.query("label"), Template: r.query("template"), Image: r.query("image"), Owner: r.who.User.ID,
	}, a)
	if err != nil {
		return reply{}, err
	}
	r.about, r.object = box, cmp.Or(box.Spec.Template, box.Spec.Image)
	out, err := s.sandboxes.sandboxReply(ctx, http.StatusCreated, box)
	out.location = sandboxPath(box.Name)
	return out, err
}

// checkNewName is Invalid when the name that a request gives cannot be one, and a Conflict when a sandbox that the caller sees has it.
func (s *backupHandlers) checkNewName(ctx context.Context, r *request) error {
	name := r.query("name")
	if name == "" {
		return nil
	}
	if err := hostname.CheckName(name); err != nil {
		return err
	}
	if _, err := s.resolve(ctx, r.who, name); err == nil {
		return &fault.Error{Kind: fault.Conflict, Field: "name", Message: "There is already a sandbox with this name. Choose another one."}
	}
	return nil
}
