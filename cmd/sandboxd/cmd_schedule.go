package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// newScheduleCmd is about schedules of backups.
func newScheduleCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "schedule", Short: "Make backups at set times", Args: cobra.NoArgs, GroupID: clientGroup}
	for _, one := range []*cobra.Command{newScheduleListCmd(), newScheduleCreateCmd(), newScheduleRunCmd(),
		newScheduleSwitchCmd("pause", "Pause a schedule of backups", false), newScheduleSwitchCmd("resume", "Resume a schedule that is paused", true), newScheduleDeleteCmd()} {
		one.GroupID = "" // that is the parent's
		cmd.AddCommand(one)
	}
	return cmd
}

// scheduleOf asks the server for a schedule, by its id, or by its name if one alone has that.
func scheduleOf(ctx context.Context, r *remote, asked string) (c *client.Client, found client.Schedule, err error) {
	if c, err = r.dial(); err != nil {
		return nil, found, err
	}
	list, err := c.Schedules(ctx)
	if err != nil {
		return nil, found, err
	}
	n := 0
	for _, s := range list {
		if s.ID == asked {
			return c, s, nil
		}
		if s.Name == asked {
			found, n = s, n+1
		}
	}
	switch n {
	case 0:
		return nil, found, fault.New(fault.NotFound, "There is no schedule %.80q. 'sandboxd schedule list' lists them.", asked)
	case 1:
		return c, found, nil
	}
	return nil, found, fault.New(fault.Conflict, "%d schedules are called %.80q. Give the id of one: 'sandboxd schedule list' lists them.", n, asked)
}

func newScheduleListCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "list",
		Short: "List the schedules of backups",
		Long:  "list prints the schedules that the token may see, with the next due time, how the last run went and why it failed: your own, or all for an admin.",
		Args:  cobra.NoArgs,
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		list, err := c.Schedules(cmd.Context())
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "NAME", "COVERS", "CRON", "TO", "NEXT", "LAST RUN", "PROBLEM"}}
		for _, s := range list {
			rows = append(rows, []string{s.ID, s.Name, covers(s.Target), s.Cron + " " + s.Zone, cmp.Or(s.Repository, "folder"), nextOf(s), lastOf(s), reasonOf(s)})
		}
		return printTable(cmd, rows)
	}
	return cmd
}

// covers says what a schedule covers.
func covers(t client.ScheduleTarget) string {
	switch t.Kind {
	case "sandbox":
		switch {
		case !t.Deleted:
			return t.Sandbox
		case t.Sandbox == "":
			return "a deleted sandbox"
		}
		return t.Sandbox + " (deleted)"
	case "template":
		return "template " + t.Template
	case "mine":
		return "all of its owner"
	}
	return t.Kind
}

func nextOf(s client.Schedule) string {
	switch {
	case !s.Enabled:
		return "paused"
	case len(s.Next) == 0:
		return "-"
	}
	return s.Next[0].Local().Format("2006-01-02 15:04")
}

// lastOf says how the last run went.
func lastOf(s client.Schedule) string {
	r := s.LastRun
	if r == nil {
		return "-"
	}
	how := r.State
	switch {
	case r.State == "running" && r.Failed > 0:
		how = fmt.Sprintf("running (%d failed so far)", r.Failed)
	case r.Problem != "" || r.Failed > 0:
		how = "failed"
		if r.Failed > 0 {
			how = fmt.Sprintf("%d failed", r.Failed)
		}
	}
	return how + ", " + r.Began.Local().Format("2006-01-02 15:04")
}

// reasonOf says why the last run failed: of the first sandbox that it failed for.
func reasonOf(s client.Schedule) string {
	r := s.LastRun
	if r == nil {
		return "-"
	}
	if r.Problem != "" {
		return r.Problem
	}
	for _, i := range r.Items {
		if i.Problem != "" {
			return i.Sandbox + ": " + i.Problem
		}
	}
	return "-"
}

// planning is a schedule that is to be made.
type planning struct {
	client.NewSchedule
	sandbox, template string
	all               bool
	keep              client.ScheduleKeep
}

func newScheduleCreateCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "create NAME",
		Short: "Create a schedule of backups",
		Long: `create makes a schedule that backs up sandboxes at the times of a cron expression (minute, hour, day, month, day of the week; or @hourly,
@daily, @weekly, @monthly), at most every 15 minutes, and deletes old backups. Without --sandbox, --template and --all it covers all
your own sandboxes. --template and --all are for admins. A sandbox that is asleep is backed up without waking it.`,
		Example: "  sandboxd schedule create nightly --cron '30 3 * * *' --zone Europe/Berlin\n  sandboxd schedule create lab --cron @hourly --sandbox lab --keep-last 24 --test-cron @weekly",
		Args:    cobra.ExactArgs(1),
	})
	p := &planning{}
	p.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := p.understand(cmd.Flags()); err != nil {
			return err
		}
		p.Name = args[0]
		c, err := r.dial()
		if err != nil {
			return err
		}
		s, err := c.CreateSchedule(cmd.Context(), p.NewSchedule)
		if err != nil {
			return err
		}
		return say(cmd, "Created the schedule %s (%s). The next backup is due at %s.", s.Name, s.ID, nextOf(s))
	}
	return cmd
}

func (p *planning) flags(f *pflag.FlagSet) {
	f.StringVar(&p.Cron, "cron", "@daily", "when backups are made")
	f.StringVar(&p.Zone, "zone", localZone(), "time zone of the times")
	f.StringVar(&p.sandbox, "sandbox", "", "cover only this sandbox")
	f.StringVar(&p.template, "template", "", "cover the sandboxes of this template, of all users")
	f.BoolVar(&p.all, "all", false, "cover all sandboxes, of all users")
	f.StringVar(&p.Repository, "repository", "", "make the backups in this repository; in the backup folder if empty")
	f.BoolVar(&p.Root, "root", false, "with what was changed of the root file systems, such as installed packages")
	f.IntVar(&p.keep.Last, "keep-last", 3, "backups of each sandbox that stay: the last ones")
	f.IntVar(&p.keep.Daily, "keep-daily", 7, "and one of each of so many days")
	f.IntVar(&p.keep.Weekly, "keep-weekly", 4, "and one of each of so many weeks")
	f.IntVar(&p.keep.Monthly, "keep-monthly", 0, "and one of each of so many months")
	f.StringVar(&p.TestCron, "test-cron", "", "when the newest backups are restored as a test; never if empty")
}

// localZone names the time zone of this machine, "UTC" when it has no name.
func localZone() string {
	if name := time.Local.String(); name != "Local" && name != "" {
		return name
	}
	return "UTC"
}

// understand makes of the flags what a schedule covers and keeps.
func (p *planning) understand(f *pflag.FlagSet) error {
	given := 0
	p.Target = client.ScheduleTarget{Kind: "mine"}
	for _, one := range []struct {
		flag   string
		target client.ScheduleTarget
	}{
		{"sandbox", client.ScheduleTarget{Kind: "sandbox", Sandbox: p.sandbox}},
		{"template", client.ScheduleTarget{Kind: "template", Template: p.template}}, {"all", client.ScheduleTarget{Kind: "all"}},
	} {
		if f.Changed(one.flag) {
			given, p.Target = given+1, one.target
		}
	}
	if given > 1 {
		return fault.New(fault.Invalid, "Use only one of --sandbox, --template and --all.")
	}
	p.Keep = &p.keep
	return nil
}

func newScheduleRunCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use: "run NAME|ID", Short: "Begin a run of a schedule now", Args: cobra.ExactArgs(1),
		Long: "run begins the backups of a schedule, or with --test the restore test of its newest backups, and does not wait for the end.",
	})
	test := cmd.Flags().Bool("test", false, "restore the newest backup of each sandbox as a test")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, s, err := scheduleOf(cmd.Context(), r, args[0])
		if err == nil {
			err = c.RunSchedule(cmd.Context(), s.ID, *test)
		}
		if err != nil {
			return err
		}
		return say(cmd, "The run has begun. 'sandboxd schedule list' says how it went.")
	}
	return cmd
}

// newScheduleSwitchCmd pauses schedules, or resumes them.
func newScheduleSwitchCmd(name, short string, on bool) *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{Use: name + " NAME|ID", Short: short, Args: cobra.ExactArgs(1)})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, s, err := scheduleOf(cmd.Context(), r, args[0])
		if err == nil {
			s, err = c.EnableSchedule(cmd.Context(), s.ID, on)
		}
		if err != nil {
			return err
		}
		if !on {
			return say(cmd, "Paused the schedule %s.", s.Name)
		}
		return say(cmd, "Resumed the schedule %s. The next backup is due at %s.", s.Name, nextOf(s))
	}
	return cmd
}

func newScheduleDeleteCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use: "delete NAME|ID", Short: "Delete a schedule of backups", Args: cobra.ExactArgs(1),
		Long: "delete deletes a schedule and the record of its runs. Its backups are kept for as long as one that a person made, from now on.",
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, s, err := scheduleOf(cmd.Context(), r, args[0])
		if err == nil {
			err = c.DeleteSchedule(cmd.Context(), s.ID)
		}
		if err != nil {
			return err
		}
		return say(cmd, "Deleted the schedule %s.", s.Name)
	}
	return cmd
}
