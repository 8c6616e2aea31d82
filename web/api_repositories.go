package web

import (
	"context"
	"net/http"
	"time"

	"sandboxd/internal/repository"
)

// repositoryShape is a backup repository as programs see it. Secrets are never in it, but for a password in the answer to its making.
type repositoryShape struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	Place     *repository.Place `json:"place,omitempty"` // for admins
	CreatedAt time.Time         `json:"created_at"`
	Backups   int               `json:"backups"` // when it was last seen
	Size      int64             `json:"size"`    // bytes, then
	SeenAt    *time.Time        `json:"seen_at"`
	Problem   string            `json:"problem"` // why it cannot be reached now
	Doing     string            `json:"doing"`
	Password  string            `json:"password,omitempty"` // that was generated
}

func newRepositoryShape(k repository.Repository, admin bool) repositoryShape {
	out := repositoryShape{Name: k.Name, Kind: string(k.Place.Kind), CreatedAt: k.Created.UTC(), Backups: k.Backups, Size: k.Size, Problem: k.Problem, Doing: k.Doing, SeenAt: timeOrNull(k.Seen)}
	if admin {
		out.Place = &k.Place
	} else if k.Problem != "" {
		out.Problem = "It cannot be reached now." // what is said of the place is for admins
	}
	return out
}

type repositoriesShape struct {
	Repositories []repositoryShape `json:"repositories"`
}

// apiRepositories lists the backup repositories. What is said of their places is for admins.
func (s *repositoryHandlers) apiRepositories(_ context.Context, r *request, _ none) (reply, error) {
	out := repositoriesShape{Repositories: []repositoryShape{}}
	for _, k := range s.cfg.Repositories.List() {
		out.Repositories = append(out.Repositories, newRepositoryShape(k, r.isAdmin() && r.who.SandboxID == ""))
	}
	return reply{body: out}, nil
}

// apiRepository answers with one.
func (s *repositoryHandlers) apiRepository(_ context.Context, r *request, _ none) (reply, error) {
	k, err := s.cfg.Repositories.Repository(r.param("name"))
	return reply{body: newRepositoryShape(k, r.isAdmin() && r.who.SandboxID == "")}, err
}

// repositoryBody says where a repository is, and how it is opened.
type repositoryBody struct {
	repository.Place
	Password   string `json:"password"`
	SecretKey  string `json:"secret_key"`
	PrivateKey string `json:"private_key"`
	TakeOver   bool   `json:"take_over"`
}

// apiPutRepository connects a repository: 201 when it was made, 200 when it was there.
func (s *repositoryHandlers) apiPutRepository(ctx context.Context, r *request, in repositoryBody) (reply, error) {
	a := repository.Access{Name: r.param("name"), Place: in.Place, Secrets: repository.Secrets{Password: in.Password, SecretKey: in.SecretKey, PrivateKey: in.PrivateKey}}
	password, created, err := s.cfg.Repositories.Put(ctx, a, in.TakeOver)
	if err != nil {
		return reply{}, err
	}
	k, err := s.cfg.Repositories.Repository(a.Name)
	out := newRepositoryShape(k, true)
	out.Password = password
	if created {
		return reply{status: http.StatusCreated, body: out, location: apiPrefix + "/repositories/" + a.Name}, err
	}
	return reply{body: out}, err
}

// apiDeleteRepository forgets a repository. What is in it stays.
func (s *repositoryHandlers) apiDeleteRepository(ctx context.Context, r *request, _ none) (reply, error) {
	return reply{status: http.StatusNoContent}, s.cfg.Repositories.Forget(ctx, r.param("name"))
}

type checkBody struct {
	Contents bool `json:"contents"`
}

// apiCheckRepository checks a repository, and waits for that. It ends with the request.
func (s *repositoryHandlers) apiCheckRepository(ctx context.Context, r *request, in checkBody) (reply, error) {
	found, err := s.cfg.Repositories.Check(ctx, r.param("name"), in.Contents)
	return reply{body: found}, err
}
