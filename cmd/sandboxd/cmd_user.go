package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// accounts are those of a data folder, and the sandboxes that tokens may be limited to.
type accounts struct {
	*auth.Service
	boxes sandbox.Store
	close func() error
}

// openAuth opens the accounts of a data folder.
type openAuth = func(ctx context.Context) (accounts, error)

func newUserCmd(open openAuth) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Add, list and change users",
		Long: `user manages who may sign in to the dashboard. It works on the data folder, with or without a running server.
Changes take effect from the next request; open connections of a user who lost access end within seconds.

An admin may do everything; a member sees and uses only their own sandboxes. Passwords are typed at the terminal, or
read from the first line of standard input when that is a file or a pipe; they are never taken from the command line,
where others could see them.`,
		Example: `  sandboxd user add ada                              add a member; asks for the password
  sandboxd user add bob --role admin < password.txt  add an admin with the password in a file
  sandboxd user passwd admin                         set a password, also of the first admin who has none yet
  sandboxd user disable bob                          lock bob out within seconds; his sandboxes stay`,
	}
	cmd.AddCommand(newUserAddCmd(open), newUserListCmd(open), newUserPasswdCmd(open), newUserRoleCmd(open),
		newUserSwitchCmd(open, "disable", true), newUserSwitchCmd(open, "enable", false), newUserDeleteCmd(open))
	return cmd
}

func newUserAddCmd(open openAuth) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user; asks for the password",
		Long: `add makes a user who can sign in with the name and the password.

A name has 1 to 40 letters a to z, digits, dots, dashes and underscores. A password has at least 10 characters.`,
		Example: `  sandboxd user add ada
  sandboxd user add bob --role admin
  pwgen 20 1 | tee bob.txt | sandboxd user add bob`,
		Args: wantArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := auth.NormalName(args[0])
			if err := auth.CheckUserName(name); err != nil {
				return err
			}
			return withAuth(cmd, open, func(ctx context.Context, s *auth.Service) error {
				password, err := readPassword(cmd, "Password for "+name)
				if err != nil {
					return err
				}
				u, err := s.CreateUser(ctx, auth.NewUser{Name: name, Role: auth.Role(role), Password: password})
				if err != nil {
					return err
				}
				return say(cmd, "Added the %s %s.", u.Role, u.Name)
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", string(auth.Member), "what the user may do: admin or member")
	return cmd
}

func newUserListCmd(open openAuth) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the users",
		Long:  "list prints all users, the oldest first. An unclaimed admin has no password yet: the link of the first run sets it, or 'user passwd'.",
		Args:  wantArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAuth(cmd, open, func(ctx context.Context, s *auth.Service) error {
				users, err := s.Users(ctx)
				if err != nil {
					return err
				}
				rows := [][]string{{"NAME", "ROLE", "STATE", "CREATED"}}
				for _, u := range users {
					rows = append(rows, []string{u.Name, string(u.Role), userState(u), day(u.Created, "")})
				}
				return printTable(cmd, rows)
			})
		},
	}
}

func userState(u auth.User) string {
	switch {
	case u.Disabled:
		return "disabled"
	case !u.Claimed:
		return "unclaimed"
	}
	return "active"
}

func newUserPasswdCmd(open openAuth) *cobra.Command {
	return &cobra.Command{
		Use:   "passwd NAME",
		Short: "Set a user's password; asks for it",
		Long: `passwd gives a user a new password without asking for the old one, and signs them out everywhere. Their API tokens
keep working. Set the first admin's password with it when the link of the first run is lost.`,
		Example: `  sandboxd user passwd admin
  sandboxd user passwd ada < password.txt`,
		Args: wantArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withUser(cmd, open, args[0], func(ctx context.Context, s *auth.Service, u auth.User) error {
				password, err := readPassword(cmd, "New password for "+u.Name)
				if err != nil {
					return err
				}
				if err := s.SetPassword(ctx, u.ID, password); err != nil {
					return err
				}
				return say(cmd, "Set the password of %s and ended their sessions.", u.Name)
			})
		},
	}
}

func newUserRoleCmd(open openAuth) *cobra.Command {
	return &cobra.Command{
		Use:   "role NAME admin|member",
		Short: "Make a user an admin or a member",
		Long:  "role changes what a user may do, from their next request on. The last admin who can sign in stays one.",
		Example: `  sandboxd user role ada admin
  sandboxd user role bob member`,
		Args: wantArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withUser(cmd, open, args[0], func(ctx context.Context, s *auth.Service, u auth.User) error {
				if err := s.SetRole(ctx, u.ID, auth.Role(args[1])); err != nil {
					return err
				}
				return say(cmd, "%s is now %s.", u.Name, map[auth.Role]string{auth.Admin: "an admin", auth.Member: "a member"}[auth.Role(args[1])])
			})
		},
	}
}

func newUserSwitchCmd(open openAuth, verb string, disabled bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:     verb + " NAME",
		Short:   "Let a disabled user in again",
		Long:    "enable lets a user sign in again and makes their API tokens work again. They have to sign in anew.",
		Example: "  sandboxd user " + verb + " ada",
		Args:    wantArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withUser(cmd, open, args[0], func(ctx context.Context, s *auth.Service, u auth.User) error {
				if err := s.SetDisabled(ctx, u.ID, disabled); err != nil {
					return err
				}
				return say(cmd, "%s is now %sd.", u.Name, verb)
			})
		},
	}
	if disabled {
		cmd.Short = "Lock a user out within seconds"
		cmd.Long = `disable ends a user's sessions and stops their API tokens from the next request on. What they have open, such as a
terminal, ends within seconds. Their sandboxes stay as they are. The last admin who can sign in cannot be disabled.`
	}
	return cmd
}

func newUserDeleteCmd(open openAuth) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a user with their sessions and tokens",
		Long: `delete removes a user for good, with their sessions and API tokens. A user who still owns sandboxes cannot be deleted:
delete those first, or disable the user instead. At a terminal it asks for the name again; elsewhere it needs --yes.`,
		Example: `  sandboxd user delete bob
  sandboxd user delete bob --yes`,
		Args: wantArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withUser(cmd, open, args[0], func(ctx context.Context, s *auth.Service, u auth.User) error {
				if err := confirm(cmd, yes, u.Name, "This deletes "+u.Name+" with all sessions and tokens."); err != nil {
					return err
				}
				if err := s.DeleteUser(ctx, u.ID); err != nil {
					return err
				}
				return say(cmd, "Deleted %s.", u.Name)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// wantArgs is cobra.ExactArgs with an error for people.
func wantArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fault.New(fault.Invalid, "Use it as '%s'. See '%s --help'.", cmd.UseLine(), cmd.CommandPath())
	}
}

// withAuth runs f with the accounts open.
func withAuth(cmd *cobra.Command, open openAuth, f func(ctx context.Context, s *auth.Service) error) error {
	return withAccounts(cmd, open, func(ctx context.Context, a accounts) error { return f(ctx, a.Service) })
}

func withAccounts(cmd *cobra.Command, open openAuth, f func(ctx context.Context, a accounts) error) (err error) {
	a, err := open(cmd.Context())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	return f(cmd.Context(), a)
}

// withUser runs f with the accounts open and the user found.
func withUser(cmd *cobra.Command, open openAuth, name string, f func(ctx context.Context, s *auth.Service, u auth.User) error) error {
	return withAuth(cmd, open, func(ctx context.Context, s *auth.Service) error {
		u, err := s.UserByName(ctx, name)
		if err != nil {
			return err
		}
		return f(ctx, s, u)
	})
}

// say tells a person about the change, beside the output that a program reads.
func say(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
	return err
}

// printTable prints rows in columns on standard output.
func printTable(cmd *cobra.Command, rows [][]string) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// day is how a time is listed; never stands for the zero time.
func day(t time.Time, never string) string {
	if t.IsZero() {
		return never
	}
	return t.Local().Format("2006-01-02 15:04")
}

// confirm says at a terminal what would be lost, and asks for the name of what it is about.
func confirm(cmd *cobra.Command, yes bool, name, loss string) error {
	if yes {
		return nil
	}
	if _, ok := terminalOf(cmd); !ok {
		return fault.New(fault.Invalid, "%s Nobody can be asked here, so say --yes.", loss)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s Type the name to confirm: ", loss)
	answer, err := cancellable(cmd.Context(), func() (string, error) { return firstLine(cmd.InOrStdin()) })
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != name {
		return fault.New(fault.Invalid, "That is not the name. Nothing was changed.")
	}
	return nil
}

// readPassword asks twice at a terminal, without echo; elsewhere it takes the first line of standard input.
func readPassword(cmd *cobra.Command, prompt string) (string, error) {
	fd, ok := terminalOf(cmd)
	if !ok {
		return firstLine(cmd.InOrStdin())
	}
	first, err := typed(cmd, fd, prompt+": ")
	if err != nil {
		return "", err
	}
	second, err := typed(cmd, fd, "Once more: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", fault.Field("password", "The two passwords differ. Nothing was changed.")
	}
	return first, nil
}

// terminalOf gives the terminal that standard input is, if it is one.
func terminalOf(cmd *cobra.Command) (fd int, ok bool) {
	f, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// typed reads a line without echo, which is off before the prompt shows, and on again afterwards, also after Ctrl-C.
func typed(cmd *cobra.Command, fd int, prompt string) (line string, err error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("read terminal settings: %w", err)
	}
	if err := echoOff(fd); err != nil {
		return "", fmt.Errorf("turn echo off: %w", err)
	}
	defer func() {
		_, end := fmt.Fprintln(cmd.ErrOrStderr())
		err = errors.Join(err, term.Restore(fd, before), end)
	}()
	if _, err := fmt.Fprint(cmd.ErrOrStderr(), prompt); err != nil {
		return "", err
	}
	return cancellable(cmd.Context(), func() (string, error) { return firstLine(cmd.InOrStdin()) })
}

// echoOff hides input at a terminal that gives whole lines and turns Ctrl-C into a signal.
func echoOff(fd int) error {
	settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	settings.Lflag &^= unix.ECHO
	settings.Lflag |= unix.ICANON | unix.ISIG
	settings.Iflag |= unix.ICRNL
	return unix.IoctlSetTermios(fd, unix.TCSETS, settings)
}

// cancellable runs read, which no context can end, until ctx ends. Its goroutine is then left to the end of the
// process, which follows at once.
func cancellable(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		line string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		line, err := read()
		done <- answer{line, err}
	}()
	select {
	case a := <-done:
		return a.line, a.err
	case <-ctx.Done():
		return "", fault.Wrap(ctx.Err(), fault.Invalid, "Given up. Nothing was changed.")
	}
}

// firstLine reads one line of at most maxLine bytes, without its end.
func firstLine(r io.Reader) (string, error) {
	const maxLine = 4096
	line, err := bufio.NewReader(io.LimitReader(r, maxLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}
