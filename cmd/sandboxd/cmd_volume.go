package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

func newVolumeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "volume",
		Short:   "Make, change and delete folders that several sandboxes have",
		GroupID: clientGroup,
		Long: `volume manages folders that several sandboxes have beside their homes: "shared" at /shared, read-only in every sandbox, and others at
/volumes/NAME. 'sandboxd cp' fills them: a side that begins with volume/NAME: is in that volume.

All but list need a token of an admin. Sandboxes get what is changed once they are started or restarted.`,
		Example: `  sandboxd volume create models --template python-ml --note "Model weights"
  sandboxd cp llama.gguf volume/models:
  sandboxd volume list`,
	}
	cmd.AddCommand(newVolumeListCmd(), newVolumeCreateCmd(), newVolumeSetCmd(), newVolumeDeleteCmd())
	return cmd
}

func newVolumeListCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{Use: "list", Short: "List the volumes",
		Long:    "list prints the volumes: all of them to an admin, to others those of their sandboxes. Who gets a volume is told to admins.",
		Example: "  sandboxd volume list", Args: cobra.NoArgs})
	cmd.GroupID = ""
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		list, err := c.Volumes().List(cmd.Context())
		if err != nil {
			return err
		}
		rows := [][]string{{"NAME", "MODE", "PATH", "SIZE", "GIVEN TO", "NOTE"}}
		for _, v := range list {
			size := "-"
			if v.Size != nil {
				size = text.Size(*v.Size)
			}
			rows = append(rows, []string{v.Name, v.Mode, v.Path, size, givenTo(v.GivenTo), orDash(v.Note)})
		}
		return printTable(cmd, rows)
	}
	return cmd
}

// givenTo says in a word or some who gets a volume.
func givenTo(g *client.VolumeGrants) string {
	if g == nil {
		return "-"
	}
	if g.All {
		return "all"
	}
	var words []string
	for _, t := range g.Templates {
		words = append(words, "template:"+t)
	}
	return orDash(strings.Join(append(words, g.Sandboxes...), ","))
}

// granting is what flags say of a volume.
type granting struct {
	rename, note, mode   string
	all, none            bool
	templates, sandboxes []string
}

func (o *granting) flags(f *pflag.FlagSet) {
	f.StringVar(&o.note, "note", "", "what it is for")
	f.StringVar(&o.mode, "mode", "", `what sandboxes may do with it: "ro" or "rw"`)
	f.BoolVar(&o.all, "all", false, "give it to all sandboxes")
	f.StringSliceVar(&o.templates, "template", nil, "give it to the sandboxes of this `TEMPLATE`; repeat it for more")
	f.StringSliceVar(&o.sandboxes, "sandbox", nil, "give it to this `SANDBOX`; repeat it for more")
}

// change gives what was asked for. The flags that say who gets it replace who got it before. Invalid when they say more than one thing.
func (o *granting) change(f *pflag.FlagSet) (c client.VolumeChange, err error) {
	chosen := len(o.templates) > 0 || len(o.sandboxes) > 0
	if o.all && o.none || chosen && (o.all || o.none) {
		return c, fault.New(fault.Invalid, "Say who gets the volume in one way: --all, --none, or --template and --sandbox.")
	}
	if f.Changed("note") {
		c.Note = &o.note
	}
	if f.Changed("mode") {
		c.Mode = &o.mode
	}
	if f.Changed("rename") {
		c.Name = &o.rename
	}
	if o.all || o.none || chosen {
		c.GivenTo = &client.VolumeGrants{All: o.all, Templates: append([]string{}, o.templates...), Sandboxes: append([]string{}, o.sandboxes...)}
	}
	return c, nil
}

func newVolumeCreateCmd() *cobra.Command {
	o := &granting{}
	cmd, r := remoteCmd(&cobra.Command{Use: "create NAME", Short: "Make a volume",
		Long:    "create makes an empty volume: read-only, and for no sandbox, unless flags say otherwise.",
		Example: "  sandboxd volume create models --all\n  sandboxd volume create cache --mode rw --template node-api --sandbox lab", Args: wantArgs(1)})
	cmd.GroupID = ""
	o.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		change, err := o.change(cmd.Flags())
		if err != nil {
			return err
		}
		change.Name = &args[0]
		c, err := r.dial()
		if err != nil {
			return err
		}
		v, err := c.Volumes().Create(cmd.Context(), change)
		if err != nil {
			return err
		}
		return say(cmd, "Made the volume %s. Sandboxes that get it have it at %s once they are started or restarted.", v.Name, v.Path)
	}
	return cmd
}

func newVolumeSetCmd() *cobra.Command {
	o := &granting{}
	cmd, r := remoteCmd(&cobra.Command{Use: "set NAME", Short: "Change a volume",
		Long:    "set changes what its flags say. Those that say who gets the volume replace who got it before.",
		Example: "  sandboxd volume set models --sandbox lab --sandbox web\n  sandboxd volume set models --none", Args: wantArgs(1)})
	cmd.GroupID = ""
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&o.none, "none", false, "give it to no sandbox")
	cmd.Flags().StringVar(&o.rename, "rename", "", "another `NAME`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkName("volume", args[0]); err != nil {
			return err
		}
		change, err := o.change(cmd.Flags())
		if err != nil {
			return err
		}
		if change == (client.VolumeChange{}) {
			return fault.New(fault.Invalid, "Nothing was asked for. See '%s --help' for what can be changed.", cmd.CommandPath())
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		v, err := c.Volumes().Change(cmd.Context(), args[0], change)
		if err != nil {
			return err
		}
		return say(cmd, "Changed the volume %s: %s, given to %s. Sandboxes get that once they are started or restarted.", v.Name, v.Mode, givenTo(v.GivenTo))
	}
	return cmd
}

func newVolumeDeleteCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{Use: "delete NAME", Short: "Delete a volume with all files in it",
		Long: `delete deletes a volume. Sandboxes that have it keep it until they are started again; with the last of them its files are removed.
At a terminal it asks for the name again; elsewhere it needs --yes.`,
		Example: "  sandboxd volume delete models\n  sandboxd volume delete models --yes", Args: wantArgs(1)})
	cmd.GroupID = ""
	yes := cmd.Flags().Bool("yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkName("volume", args[0]); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		if err := confirm(cmd, *yes, args[0], "This deletes the volume "+args[0]+" with all files in it."); err != nil {
			return err
		}
		if err := c.Volumes().Delete(cmd.Context(), args[0]); err != nil {
			return err
		}
		return say(cmd, "Deleted the volume %s.", args[0])
	}
	return cmd
}
