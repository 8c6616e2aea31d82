package web

import (
	"context"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// pageUsers lists all people.
func (s *accountHandlers) pageUsers(ctx context.Context, r *request) (templ.Component, error) {
	return s.usersForm(ctx, r, views.Users{Done: outcomes[r.query("done")]})
}

func (s *accountHandlers) usersForm(ctx context.Context, r *request, v views.Users) (templ.Component, error) {
	users, err := s.cfg.Accounts.Users(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		_, owns, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Owner: u.ID, Limit: 1})
		if err != nil {
			return nil, err
		}
		v.Items = append(v.Items, views.User{
			ID: u.ID, Name: u.Name, Admin: u.Role == auth.Admin, Disabled: u.Disabled, Waiting: !u.Claimed,
			Self: u.ID == r.who.User.ID, Made: timeOf(u.Created, s.cfg.Now()), Owns: sandboxCount(owns),
		})
	}
	v.Frame = s.frame(r, "Users", "settings")
	v.Frame.Here = usersPath
	return views.UsersPage(v), nil
}

func sandboxCount(n int) string {
	switch n {
	case 0:
		return "no sandboxes"
	case 1:
		return "1 sandbox"
	}
	return strconv.Itoa(n) + " sandboxes"
}

// submitUser adds a person.
func (s *accountHandlers) submitUser(ctx context.Context, r *request) (string, error) {
	_, err := s.cfg.Accounts.CreateUser(ctx, auth.NewUser{
		Name: r.field("name"), Role: auth.Role(r.field("role")), Password: r.form("password"),
	})
	return done(usersPath, "added"), err
}

func (s *accountHandlers) againUser(ctx context.Context, r *request, err error) (templ.Component, error) {
	var v views.Users
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "password": &v.Password, "role": &v.Role}, err)
	v.Password.Value = "" // never back to the page
	return s.usersForm(ctx, r, v)
}

// submitRole makes a person an admin or a member.
func (s *accountHandlers) submitRole(ctx context.Context, r *request) (string, error) {
	if err := r.notSelf(); err != nil {
		return "", err
	}
	s.objectUser(ctx, r, r.form("value"))
	return done(usersPath, "changed"), s.cfg.Accounts.SetRole(ctx, r.param("id"), auth.Role(r.form("value")))
}

// submitDisabled keeps a person out, or lets them in again.
func (s *accountHandlers) submitDisabled(ctx context.Context, r *request) (string, error) {
	if err := r.notSelf(); err != nil {
		return "", err
	}
	s.objectUser(ctx, r, map[bool]string{true: "disabled", false: "enabled"}[r.form("value") == "true"])
	return done(usersPath, "changed"), s.cfg.Accounts.SetDisabled(ctx, r.param("id"), r.form("value") == "true")
}

// notSelf keeps admins from taking their own rights away by a slip.
func (r *request) notSelf() error {
	if r.param("id") == r.who.User.ID {
		return fault.New(fault.Conflict, "This is your own account. Let another admin change it.")
	}
	return nil
}

func (s *accountHandlers) againUsers(ctx context.Context, r *request, err error) (templ.Component, error) {
	return s.usersForm(ctx, r, views.Users{Fault: fault.Message(err)})
}

// pageDeleteUser asks before an account goes; a script gets the question as a sheet.
func (s *accountHandlers) pageDeleteUser(ctx context.Context, r *request) (templ.Component, error) {
	return s.deleteUserForm(ctx, r, views.Field{})
}

func (s *accountHandlers) deleteUserForm(ctx context.Context, r *request, typed views.Field) (templ.Component, error) {
	u, err := s.cfg.Accounts.User(ctx, r.param("id"))
	if err != nil {
		return nil, err
	}
	v := views.DeleteUser{ID: u.ID, Name: u.Name, Typed: typed, Lost: []string{
		"The account, its password and its sessions.", "All its API tokens: programs that use them are refused.",
	}}
	if r.byScript() {
		return views.DeleteUserSheet(v), nil
	}
	v.Frame = s.frame(r, "Delete "+u.Name, "settings")
	return views.DeleteUserPage(v), nil
}

// submitDeleteUser deletes an account whose name was typed.
func (s *accountHandlers) submitDeleteUser(ctx context.Context, r *request) (string, error) {
	if err := r.notSelf(); err != nil {
		return "", err
	}
	u, err := s.cfg.Accounts.User(ctx, r.param("id"))
	if err != nil {
		return "", err
	}
	r.object = u.Name
	if r.field("confirm") != u.Name {
		return "", fault.Field("confirm", "This is not the name. Type %s to delete the account.", u.Name)
	}
	return done(usersPath, "deleted"), s.cfg.Accounts.DeleteUser(ctx, u.ID)
}

func (s *accountHandlers) againDeleteUser(ctx context.Context, r *request, err error) (templ.Component, error) {
	return s.deleteUserForm(ctx, r, views.Field{Value: r.form("confirm"), Fault: fault.Message(err)})
}
