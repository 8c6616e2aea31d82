package web

import (
	"context"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/schedule"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// repositoriesPath is the page of the backup repositories.
const repositoriesPath = settingsPath + "/repositories"

// repositoryURL is the form of a repository.
func repositoryURL(name string) string { return repositoriesPath + "/" + name }

// repositoryKind is how a kind of repositories is shown.
type repositoryKind struct{ icon, title, text string }

// repositoryKinds has every kind.
var repositoryKinds = map[repository.Kind]repositoryKind{
	repository.Folder: {"folder", "Folder", "A folder on the server, such as a mounted disk or network share."},
	repository.S3:     {"globe", "S3", "A bucket at Amazon S3, MinIO, Backblaze B2 or another server that speaks S3."},
	repository.SFTP:   {"terminal", "SFTP", "A folder on another machine, over SSH."},
}

// pageRepositories lists the repositories. It asks none of them.
func (s *repositoryHandlers) pageRepositories(_ context.Context, r *request) (templ.Component, error) {
	v := views.Repositories{Done: outcomes[r.query("done")], List: s.list(), Frame: s.frame(r, "Backup repositories", "settings")}
	v.Frame.Here = repositoriesPath
	v.Frame.Live = views.Live{Topic: repositoriesPath, Seen: "seen=" + printOf(v.List)}
	return views.RepositoriesPage(v), nil
}

func (s *repositoryHandlers) list() (v views.RepositoryList) {
	v.Kept = afterText(catalog.After(s.cfg.Backups.Keep))
	for _, k := range s.cfg.Repositories.List() {
		v.Items = append(v.Items, s.item(k))
	}
	return v
}

// item makes a repository ready to show.
func (s *repositoryHandlers) item(k repository.Repository) views.Repository {
	kind, now := repositoryKinds[k.Place.Kind], s.cfg.Now()
	v := views.Repository{
		Name: k.Name, Icon: kind.icon, Kind: kind.title, Place: views.Plain(k.Place.String(), maxPath), Problem: views.Plain(k.Problem, 0),
		State: repositoryState(k), Result: checkResult(k), Busy: k.Doing != "",
		Facts: []string{amount(int64(k.Backups), "backup"), text.Size(k.Size)},
	}
	if !k.Seen.IsZero() {
		v.Seen = timeOf(k.Seen, now)
	}
	if !k.Saved.IsZero() {
		v.Saved = timeOf(k.Saved, now)
	}
	return v
}

// repositoryState says whether a repository can be used.
func repositoryState(k repository.Repository) views.State {
	switch {
	case k.Doing == "checking":
		v := views.State{Tone: "busy", Icon: "state-busy", Text: "Checking", Bar: views.BarUnknown}
		if k.Done.Total > 0 {
			v.Why = text.Size(min(k.Done.Done, k.Done.Total)) + " of " + text.Size(k.Done.Total)
		}
		return v
	case k.Problem != "":
		return views.State{Tone: "bad", Icon: "state-failed", Text: "Cannot be used", Bar: views.BarNone}
	case k.Doing != "":
		return views.State{Tone: "busy", Icon: "state-busy", Text: "Giving back room", Bar: views.BarUnknown}
	case k.Seen.IsZero():
		return views.State{Tone: "still", Icon: "clock", Text: "Not seen yet", Bar: views.BarNone}
	}
	return views.State{Tone: "good", Icon: "check", Text: "Can be used", Bar: views.BarNone}
}

// checkResult says what the last check has found.
func checkResult(k repository.Repository) views.State {
	switch {
	case k.Doing == "checking" || k.Result == nil && k.Failed == "":
		return views.State{}
	case k.Failed != "":
		return views.State{Tone: "bad", Icon: "warn", Text: "The last check failed: " + views.Plain(k.Failed, 0)}
	case len(k.Result.Damaged) > 0:
		return views.State{Tone: "bad", Icon: "warn", Text: amount(int64(len(k.Result.Damaged)), "backup") + " of " + strconv.Itoa(k.Result.Backups) + " cannot be restored"}
	case k.Result.Read:
		return views.State{Tone: "good", Icon: "check", Text: "Checked: " + amount(int64(k.Result.Backups), "backup") + " read in full"}
	}
	return views.State{Tone: "good", Icon: "check", Text: "Checked: it can be written and read, and all parts of its backups are there"}
}

// pageNewRepository shows the form of a repository of the kind that the address names, or asks for one.
func (s *repositoryHandlers) pageNewRepository(_ context.Context, r *request) (templ.Component, error) {
	if kind := r.query("kind"); kind != "" {
		return s.form(r, repository.Repository{Place: repository.Place{Kind: repository.Kind(kind)}}, nil)
	}
	v := views.AlertKinds{Title: "Add repository", Text: "Where is it?", Next: repositoriesPath}
	for _, kind := range repository.Kinds {
		k := repositoryKinds[kind]
		v.Items = append(v.Items, views.KindChoice{Icon: k.icon, Title: k.title, Text: k.text, URL: repositoriesPath + "/new?kind=" + string(kind)})
	}
	if r.byScript() {
		return views.AlertKindsSheet(v), nil
	}
	v.Frame = s.frame(r, v.Title, "settings")
	return views.AlertKindsPage(v), nil
}

// pageRepository shows the form of a repository that there is.
func (s *repositoryHandlers) pageRepository(_ context.Context, r *request) (templ.Component, error) {
	k, err := s.cfg.Repositories.Repository(r.param("name"))
	if err != nil {
		return nil, err
	}
	return s.form(r, k, nil)
}

// form is the form of a repository, without its secrets. mend may put in what was entered.
func (s *repositoryHandlers) form(r *request, k repository.Repository, mend func(*views.RepositoryForm)) (templ.Component, error) {
	kind, ok := repositoryKinds[k.Place.Kind]
	if !ok {
		return nil, fault.Field("kind", "There is no kind %.40q of repositories.", string(k.Place.Kind))
	}
	p := k.Place
	v := views.RepositoryForm{Known: k.Name != "", Kind: string(p.Kind), Title: kind.title, Text: kind.text, PlainHTTP: p.PlainHTTP,
		Name: views.Field{Value: k.Name}, Path: views.Field{Value: p.Path}, Endpoint: views.Field{Value: p.Endpoint}, Bucket: views.Field{Value: p.Bucket},
		Prefix: views.Field{Value: p.Prefix}, Region: views.Field{Value: p.Region}, AccessKey: views.Field{Value: p.AccessKey}, CA: views.Field{Value: p.CA},
		Host: views.Field{Value: p.Host}, User: views.Field{Value: p.User}, HostKey: views.Field{Value: p.HostKey}}
	if p.Port != 0 {
		v.Port.Value = strconv.Itoa(p.Port)
	}
	if mend != nil {
		mend(&v)
	}
	if r.byScript() {
		return views.RepositorySheet(v), nil
	}
	v.Frame = s.frame(r, "Backup repository", "settings")
	return views.RepositoryFormPage(v), nil
}

// submitRepository connects a repository, or changes how one is reached. A password that was generated is shown this once.
func (s *repositoryHandlers) submitRepository(ctx context.Context, r *request) (string, error) {
	a := repository.Access{Name: r.field("name"), Place: repository.Place{
		Kind: repository.Kind(r.form("kind")), Path: r.field("path"), Endpoint: r.field("endpoint"), Bucket: r.field("bucket"), Prefix: r.field("prefix"),
		Region: r.field("region"), AccessKey: r.field("access_key"), PlainHTTP: r.form("plain_http") != "", CA: r.form("ca"),
		Host: r.field("host"), User: r.field("user"), HostKey: r.form("host_key"),
	}, Secrets: repository.Secrets{Password: r.form("password"), SecretKey: r.field("secret_key"), PrivateKey: r.form("private_key")}}
	if at := r.param("name"); at != "" {
		a.Name = at
	}
	if port := r.field("port"); port != "" {
		n, err := strconv.Atoi(port)
		if err != nil {
			return "", fault.Field("port", "A port is a number from 1 to 65535.")
		}
		a.Place.Port = n
	}
	password, _, err := s.cfg.Repositories.Put(ctx, a, r.form("take_over") != "")
	if err != nil {
		return "", err
	}
	if password == "" {
		return done(repositoriesPath, "repository-saved"), nil
	}
	v := views.RepositoryPassword{Name: a.Name, Password: password, Next: repositoriesPath}
	if r.byScript() {
		r.answer = views.RepositoryPasswordSheet(v, true)
		return "", nil
	}
	v.Frame = s.frame(r, "Backup repository", "settings")
	r.answer = views.RepositoryPasswordPage(v)
	return "", nil
}

// againRepository shows the form again with its values, and the error beside its field. Secrets have to be entered again.
func (s *repositoryHandlers) againRepository(_ context.Context, r *request, cause error) (templ.Component, error) {
	k := repository.Repository{Name: r.param("name"), Place: repository.Place{Kind: repository.Kind(r.form("kind"))}}
	return s.form(r, k, func(v *views.RepositoryForm) {
		v.PlainHTTP = r.form("plain_http") != ""
		v.Fault = r.fill(map[string]*views.Field{
			"name": &v.Name, "path": &v.Path, "endpoint": &v.Endpoint, "bucket": &v.Bucket, "prefix": &v.Prefix, "region": &v.Region, "access_key": &v.AccessKey,
			"secret_key": &v.SecretKey, "ca": &v.CA, "host": &v.Host, "port": &v.Port, "user": &v.User, "host_key": &v.HostKey, "private_key": &v.Key,
			"password": &v.Password, "take_over": &v.TakeOver,
		}, cause)
		if v.Known {
			v.Name.Value = r.param("name")
		}
		v.SecretKey.Value, v.Key.Value, v.Password.Value = "", "", ""
	})
}

// submitCheckRepository begins a check. The page's list shows how far it is.
func (s *repositoryHandlers) submitCheckRepository(_ context.Context, r *request) (string, error) {
	return repositoriesPath, s.cfg.Repositories.BeginCheck(r.param("name"), r.form("contents") != "")
}

// pageRemoveRepository asks before a repository is removed.
func (s *repositoryHandlers) pageRemoveRepository(ctx context.Context, r *request) (templ.Component, error) {
	k, err := s.cfg.Repositories.Repository(r.param("name"))
	if err != nil {
		return nil, err
	}
	using, err := s.cfg.Schedules.List(ctx, func(one schedule.Schedule) bool { return one.Repository == k.Name })
	if err != nil {
		return nil, err
	}
	v := views.RemoveRepository{Name: k.Name, Place: k.Place.String(), Backups: k.Backups}
	for _, one := range using {
		v.Schedules = append(v.Schedules, one.Name)
	}
	if r.byScript() {
		return views.RemoveRepositorySheet(v), nil
	}
	v.Frame = s.frame(r, "Remove a backup repository", "settings")
	return views.RemoveRepositoryPage(v), nil
}

// submitRemoveRepository forgets a repository. What is in it stays.
func (s *repositoryHandlers) submitRemoveRepository(ctx context.Context, r *request) (string, error) {
	return done(repositoriesPath, "repository-removed"), s.cfg.Repositories.Forget(ctx, r.param("name"))
}
