package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/alert"
	"sandboxd/internal/catalog"
	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/repository"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/template"
	"sandboxd/internal/trials"
	"sandboxd/internal/update"
	"sandboxd/internal/volume"
)

// For every version there is a file testdata/NNNN.sql, written when that version was the newest, which fills the tables
// that the version brought or changed. A new migration comes with a new file and leaves the older ones alone: the test
// makes a database of each version, fills it with the files up to it, brings it to the newest, and reads everything.
func TestMigrate_EveryEarlierVersionComesUpToDate(t *testing.T) {
	for version := range newest() + 1 {
		t.Run(fmt.Sprintf("from %d", version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sandboxd.db")
			makeVersion(t, path, version)
			for range 2 { // the second time there is nothing to do
				checkSamples(t, upgraded(t, path), version)
			}
		})
	}
}

// makeVersion makes a database as a program of that version left it.
func makeVersion(t *testing.T, path string, version int) {
	t.Helper()
	old, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.migrate(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range migrations[:version] {
		script, err := os.ReadFile(fmt.Sprintf("testdata/%04d.sql", m.version))
		if err != nil {
			t.Fatalf("version %d has no sample of its data: %v", m.version, err)
		}
		if err := old.migrate(t.Context(), m.version, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := old.writer.ExecContext(t.Context(), string(script)); err != nil {
			t.Fatalf("sample of version %d: %v", m.version, err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
}

// upgraded opens a database of any version.
func upgraded(t *testing.T, path string) *DB {
	t.Helper()
	if err := Upgrade(t.Context(), path, "test", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

// samples say what the files of testdata have put in, as the newest program must see it, by version.
var samples = map[int]func(t *testing.T, d *DB){
	1: func(t *testing.T, d *DB) {
		b, err := d.Sandboxes().ByName(t.Context(), "ml")
		if err != nil || b.Label != "ML Experiments" || b.Spec.Env["API_KEY"] != "x" || b.Pooled {
			t.Errorf("sandbox %+v, %v", b, err)
		}
		list, total, err := d.Sandboxes().List(t.Context(), sandbox.Filter{Query: "experiments"})
		if err != nil || total != 1 || len(list) != 1 {
			t.Errorf("search finds %d, %v", total, err)
		}
		if id, err := d.Instance(t.Context()); err != nil || id != "0123abcd" {
			t.Errorf("instance %q, %v", id, err)
		}
	},
	2: func(t *testing.T, d *DB) {
		users, err := d.Auth().Users(t.Context())
		if err != nil || len(users) < 2 || users[0].Claimed || !users[1].Claimed {
			t.Fatalf("users %+v, %v", users, err)
		}
		sessions, err := d.Auth().Sessions(t.Context(), users[1].ID)
		if err != nil || len(sessions) == 0 || sessions[len(sessions)-1].Parent != "" || !sessions[len(sessions)-1].Stay {
			t.Errorf("sessions %+v, %v", sessions, err)
		}
		tokens, err := d.Auth().Tokens(t.Context(), users[0].ID)
		if err != nil || len(tokens) == 0 || !tokens[0].LastUsed.IsZero() {
			t.Errorf("tokens %+v, %v", tokens, err)
		}
	},
	3: func(t *testing.T, d *DB) {
		b, err := d.Sandboxes().ByName(t.Context(), "ml")
		want := catalog.Rest{FreezeAfter: catalog.After(15 * time.Minute), StopAfter: catalog.Never}
		if err != nil || b.State != sandbox.Frozen || b.Rest != want {
			t.Errorf("sandbox %+v, %v", b, err)
		}
		list, total, err := d.Sandboxes().List(t.Context(), sandbox.Filter{Pooled: true, Up: true})
		if err != nil || total != 1 || list[0].Name != "spare" || !list[0].Pooled {
			t.Errorf("pooled: %+v, %v", list, err)
		}
		holds, err := d.Holds().Holds(t.Context())
		if err != nil || len(holds) != 1 || holds[0].SandboxID != b.ID || holds[0].Reason != "training" {
			t.Errorf("holds %+v, %v", holds, err)
		}
		g, err := d.Sandboxes().tombstoneSince(t.Context(), "gone", time.Unix(1, 0))
		if err != nil || g.Owner != "00000000000000u2" {
			t.Errorf("tombstone %+v, %v", g, err)
		}
	},
	4: func(t *testing.T, d *DB) {
		on := true
		want := sandbox.Overrides{HasServices: true, IDE: &on, Services: []catalog.Service{{
			Name: "web", Command: []string{"npm", "start"}, Port: 3000, Cwd: "/srv", Env: map[string]string{"A": "b"},
			Autostart: true, Health: &catalog.Health{Path: "/healthz", Interval: 5 * time.Second},
		}}}
		b, err := d.Sandboxes().ByName(t.Context(), "ml")
		if diff := cmp.Diff(want, b.Overrides); err != nil || diff != "" {
			t.Errorf("own services differ, %v:\n%s", err, diff)
		}
		b, err = d.Sandboxes().ByName(t.Context(), "bare")
		if diff := cmp.Diff(sandbox.Overrides{HasServices: true}, b.Overrides); err != nil || diff != "" {
			t.Errorf("the empty list differs, %v:\n%s", err, diff)
		}
	},
	5: func(t *testing.T, d *DB) {
		rules, shares, err := d.Ports().Rules(t.Context())
		if err != nil || len(rules) != 2 || rules[0].Visibility != sandbox.Public || rules[1].Visibility != sandbox.Shared ||
			len(shares) != 1 || shares[0].Label != "for Grace" || shares[0].Port != 8888 {
			t.Errorf("ports %+v, %+v, %v", rules, shares, err)
		}
	},
	6: func(t *testing.T, d *DB) {
		value, err := d.Workspace().Preference(t.Context(), "00000000000000u2", "workspace")
		if err != nil || value != `{"front":"files"}` {
			t.Errorf("preference %q, %v", value, err)
		}
		names, err := d.Workspace().TabNames(t.Context(), "00000000000000aa")
		if err != nil || names["main"] != "server" {
			t.Errorf("names %v, %v", names, err)
		}
	},
	7: func(t *testing.T, d *DB) {
		tokens, err := d.Auth().Tokens(t.Context(), "00000000000000u2")
		if err != nil || len(tokens) != 1 || tokens[0].Sandbox != "ml" || tokens[0].SandboxID != "00000000000000aa" {
			t.Errorf("tokens %+v, %v", tokens, err)
		}
		sessions, err := d.Auth().Sessions(t.Context(), "00000000000000u2")
		if err != nil || len(sessions) != 2 || sessions[0].SandboxID != "00000000000000aa" {
			t.Errorf("sessions %+v, %v", sessions, err)
		}
		g, err := d.Sandboxes().tombstoneSince(t.Context(), "late", time.Unix(1, 0))
		if err != nil || g.ID != "00000000000000cc" {
			t.Errorf("tombstone %+v, %v", g, err)
		}
	},
	8: func(t *testing.T, d *DB) {
		b, err := d.Sandboxes().ByName(t.Context(), "spare")
		if err != nil || b.Label != "" || b.Fingerprint != "0123456789abcdef0123456789abcdef" {
			t.Errorf("pooled: %+v, %v", b, err)
		}
	},
	9: func(t *testing.T, d *DB) {
		rules, err := d.Alerts().Rules(t.Context())
		if err != nil || len(rules) != 2 || rules[0].For != time.Minute || !rules[0].Disabled || rules[1].Remind != time.Hour || len(rules[1].Channels) != 1 {
			t.Errorf("rules %+v, %v", rules, err)
		}
		open, err := d.Alerts().Open(t.Context())
		if err != nil || len(open) != 1 || open[0].State != alert.Firing || open[0].Target.Sandbox != "ml" {
			t.Errorf("alerts %+v, %v", open, err)
		}
		list, err := d.Alerts().Deliveries(t.Context(), "00000000000000e1", 10)
		if err != nil || len(list) != 1 || len(list[0].Message.Firing) != 1 || list[0].Message.Kind != alert.LogLine {
			t.Fatalf("deliveries %+v, %v", list, err)
		}
		if diff := cmp.Diff(open[0], list[0].Message.Firing[0]); diff != "" {
			t.Errorf("what a message tells of it differs:\n%s", diff)
		}
	},
	10: func(t *testing.T, d *DB) {
		b, err := d.Sandboxes().ByName(t.Context(), "plain")
		if err != nil || b.State != sandbox.Restoring || b.CutOff != sandbox.Running {
			t.Errorf("sandbox %+v, %v", b, err)
		}
	},
	11: func(t *testing.T, d *DB) {
		b, err := d.Sandboxes().ByName(t.Context(), "plain")
		no := false
		want := sandbox.Revert{Snapshot: "0123456789abcdef", Root: "sandboxd/snapshot:two", Overrides: sandbox.Overrides{IDE: &no}}
		if err != nil || b.Root != "sandboxd/snapshot:one" || b.ClonedFrom != "first" || !cmp.Equal(b.Revert, want) {
			t.Errorf("sandbox %+v, %v", b, err)
		}
	},
	12: func(t *testing.T, d *DB) {
		list, err := d.Snapshots().List(t.Context())
		if err != nil || len(list) != 2 {
			t.Fatalf("snapshots %+v, %v", list, err)
		}
		one, two := list[0], list[1]
		if one.Name != "first" || !one.Still || len(one.Stats.Lost) != 1 || one.Origin.Spec.Env["API_KEY"] != "x" || one.Origin.Rest.StopAfter != -1 ||
			two.Parent != one.ID || two.Kind != snapshot.Automatic || two.Origin.Spec.Image != "debian" {
			t.Errorf("snapshots %+v", list)
		}
		heads, err := d.Snapshots().Heads(t.Context())
		if err != nil || heads["00000000000000aa"] != (snapshot.Head{Snapshot: two.ID, Undo: one.ID}) {
			t.Errorf("heads %+v, %v", heads, err)
		}
		if one.Origin.Spec.Limits.Disk != 0 {
			t.Errorf("limits of one from before there was one on the home: %+v", one.Origin.Spec.Limits)
		}
	},
	13: func(t *testing.T, d *DB) {
		limited, err := d.Sandboxes().ByName(t.Context(), "plain")
		other, err2 := d.Sandboxes().ByName(t.Context(), "ml")
		if err := errors.Join(err, err2); err != nil || limited.Spec.Limits.Disk != 10<<30 || other.Spec.Limits.Disk != 0 {
			t.Errorf("limits %+v and %+v, %v", limited.Spec.Limits, other.Spec.Limits, err)
		}
	},
	14: func(t *testing.T, d *DB) {
		list, err := d.Schedules().Schedules(t.Context())
		if err != nil || len(list) != 1 || list[0].Keep != (schedule.Keep{Last: 3, Daily: 7, Weekly: 4, Monthly: 12}) || !list[0].NextTest.IsZero() {
			t.Fatalf("schedules %+v, %v", list, err)
		}
		runs, err := d.Schedules().Runs(t.Context(), list[0].ID, 10)
		unkept, err2 := d.Schedules().Unkept(t.Context())
		if err := errors.Join(err, err2); err != nil || len(runs) != 1 || !runs[0].Good() || runs[0].Items[0].Backup != "0123456789abcdef" || len(unkept) != 1 {
			t.Errorf("runs %+v and unkept %v, %v", runs, unkept, err)
		}
	},
	15: func(t *testing.T, d *DB) {
		list, err := d.Repositories().List(t.Context())
		want := []repository.Record{{Name: "nas", Identity: "00ff", Secrets: []byte{1, 2}, Created: time.Unix(1700000000, 0).UTC(),
			Place: repository.Place{Kind: repository.SFTP, Path: "/srv/backups", Host: "nas.lan", Port: 22, User: "ann", HostKey: "ssh-ed25519 AAAA"}}}
		if diff := cmp.Diff(want, list); err != nil || diff != "" {
			t.Errorf("repositories differ, %v:\n%s", err, diff)
		}
	},
	16: func(t *testing.T, d *DB) {
		list, err := d.Volumes().Volumes(t.Context())
		made := time.Unix(1700000000, 0).UTC()
		want := []volume.Volume{{ID: "00000000000000v1", Name: "models", Note: "Weights", Mode: volume.ReadOnly, Created: made,
			Grants: volume.Grants{Templates: []string{"python-ml"}, Sandboxes: []string{"0123456789abcdef"}}},
			{ID: "00000000000000v2", Name: "models", Mode: volume.ReadWrite, Grants: volume.Grants{All: true}, Created: made, Deleting: true}}
		if diff := cmp.Diff(want, list); err != nil || diff != "" {
			t.Errorf("volumes differ, %v:\n%s", err, diff)
		}
	},
	17: func(t *testing.T, d *DB) {
		sources, err := d.Templates().Sources(t.Context())
		if err != nil || len(sources) != 1 || sources[0].URL != "ssh://git@git.lan/t.git" || !sources[0].Tried.IsZero() || sources[0].Date.Unix() != 1700000000 {
			t.Errorf("sources %+v, %v", sources, err)
		}
		plans, err := d.Templates().Plans(t.Context())
		if err != nil || len(plans) != 1 || plans[0].Template != "base" || !plans[0].NoCache {
			t.Errorf("plans %+v, %v", plans, err)
		}
		if b, err := d.Templates().Build(t.Context(), "rust", 7); err != nil || b.By != "ann" || b.State != template.Running || !b.Ended.IsZero() {
			t.Errorf("build %+v, %v", b, err)
		}
	},
	18: func(t *testing.T, d *DB) {
		b, err := d.Sandboxes().ByName(t.Context(), "plain")
		if err != nil || b.Base != "sandboxd/base:0123456789ab" {
			t.Errorf("sandbox %+v, %v", b, err)
		}
		list, err := d.Updates().List(t.Context())
		if err != nil || len(list) != 1 || list[0].MaxFailures != 2 || !list[0].Force || list[0].Count(update.Broken) != 1 || list[0].Items[0].Log[0] != "oops" {
			t.Errorf("updates %+v, %v", list, err)
		}
	},
	19: func(t *testing.T, d *DB) {
		list, err := d.Snapshots().List(t.Context())
		if err != nil || len(list) != 2 || list[0].Memory != 123456789 || list[1].Memory != 0 {
			t.Errorf("snapshots %+v, %v", list, err)
		}
	},
	20: func(t *testing.T, d *DB) {
		list, err := d.Schedules().Schedules(t.Context())
		if err != nil || len(list) != 1 || !list[0].Root {
			t.Errorf("schedules %+v, %v", list, err)
		}
	},
	21: func(t *testing.T, d *DB) {
		v, err := d.Workspace().LastView(t.Context(), "00000000000000aa")
		if err != nil || len(v.Screen) != 1 || len(v.Files) != 1 || !v.Files[0].Folder || v.Taken.IsZero() {
			t.Errorf("last view %+v, %v", v, err)
		}
	},
	22: func(t *testing.T, d *DB) {
		list, _, err := d.Sandboxes().List(t.Context(), sandbox.Filter{})
		if i := slices.IndexFunc(list, func(s sandbox.Sandbox) bool { return s.Resizing }); err != nil || i < 0 || slices.ContainsFunc(list[i+1:], func(s sandbox.Sandbox) bool { return s.Resizing }) {
			t.Errorf("not one is being resized: %+v, %v", list, err)
		}
	},
	23: func(t *testing.T, d *DB) {
		uses, err := d.LastUses().LastUses(t.Context())
		if at := uses["00000000000000aa"]; err != nil || at.UnixMicro() != 1_800_000_000_000_000 {
			t.Errorf("last uses %v, %v", uses, err)
		}
	},
	24: func(t *testing.T, d *DB) {
		times, err := d.Times().StepTimes(t.Context())
		if err != nil || times["create/base/start"] != 420*time.Millisecond {
			t.Errorf("times of steps %v, %v", times, err)
		}
	},
	25: func(t *testing.T, d *DB) {
		brief, err := d.Auth().Session(t.Context(), "00000000000000s9")
		if err != nil || brief.Stay {
			t.Errorf("session %+v, %v", brief, err)
		}
	},
	26: func(t *testing.T, d *DB) {
		s, at := d.Gateway(), time.UnixMicro(1795251600000000).UTC()
		providers, err := s.Providers(t.Context())
		if err != nil || len(providers) < 2 || !providers[0].HasKey || providers[0].Models[0] != "claude-opus-5-5" || providers[1].Kind != gateway.Ollama {
			t.Errorf("providers %+v, %v", providers, err)
		}
		aliases, err := s.Aliases(t.Context())
		if err != nil || len(aliases) != 1 || aliases[0].Targets[0].Provider != "cloud" {
			t.Errorf("aliases %+v, %v", aliases, err)
		}
		budgets, err := s.Budgets(t.Context())
		if err != nil || len(budgets) != 2 || budgets[0].Cost != 20_000_000 || budgets[1].Subject != "00000000000000aa" {
			t.Errorf("budgets %+v, %v", budgets, err)
		}
		if to, err := s.Settings(t.Context()); err != nil || to.Off || !to.LogContent {
			t.Errorf("settings %+v, %v", to, err)
		}
		calls, err := s.Calls(t.Context(), gateway.CallQuery{Sandbox: "ml"})
		if err != nil || len(calls) != 1 || calls[0].Took != 2*time.Second || calls[0].Tokens.CacheWrite != 40 {
			t.Errorf("calls %+v, %v", calls, err)
		}
		used, err := s.Usage(t.Context(), gateway.UsageQuery{From: at, To: at.Add(time.Hour), By: "sandbox"})
		if err != nil || len(used) != 1 || used[0].Label != "ml" || used[0].Cost != 1234 {
			t.Errorf("usage %+v, %v", used, err)
		}
	},
	27: func(t *testing.T, d *DB) {
		tokens, err := d.Auth().Tokens(t.Context(), "00000000000000u9")
		if err != nil || len(tokens) != 1 || !tokens[0].Models {
			t.Errorf("tokens %+v, %v", tokens, err)
		}
	},
	28: func(t *testing.T, d *DB) {
		s := d.Chat()
		list, err := s.List(t.Context(), "00000000000000dd")
		if err != nil || len(list) != 1 || list[0].State != chat.Failed || !list[0].Held || list[0].Used.Cost != 1234 || list[0].Mode != chat.AskChanges {
			t.Fatalf("conversations %+v, %v", list, err)
		}
		if queue, err := s.Queue(t.Context(), list[0].ID); err != nil || len(queue) != 1 || queue[0].Text != "and test it" || queue[0].At.IsZero() {
			t.Errorf("queue %+v, %v", queue, err)
		}
		if memory, err := s.Memory(t.Context(), list[0].ID); err != nil || string(memory) != `{"messages":[]}` {
			t.Errorf("memory %s, %v", memory, err)
		}
		items, err := s.Items(t.Context(), list[0].ID, chat.ItemQuery{Limit: 10})
		if err != nil || len(items) != 2 || items[0].Text != "fix the build" || items[1].Kind != chat.CallItem || items[1].Output != "ok" || len(items[1].Data) == 0 {
			t.Errorf("items %+v, %v", items, err)
		}
	},
	29: func(t *testing.T, d *DB) {
		c, err := d.Chat().Conversation(t.Context(), "00000000000000f1")
		if err != nil || len(c.Settings.Options) != 1 || c.Settings.Options[0].Chosen() != "plan" {
			t.Errorf("settings %+v, %v", c.Settings, err)
		}
	},
	30: func(t *testing.T, d *DB) {
		providers, err := d.Gateway().Providers(t.Context())
		at := slices.IndexFunc(providers, func(p gateway.Provider) bool { return p.Name == "inside" })
		if err != nil || at < 0 || providers[at].Inside != (gateway.Inside{Sandbox: "00000000000000aa", Name: "ml", Port: 11434}) {
			t.Errorf("providers %+v, %v", providers, err)
		}
	},
	31: func(t *testing.T, d *DB) {
		list, err := d.Chat().Links(t.Context(), "00000000000000f1")
		if err != nil || len(list) != 2 || !list[0].Expires.IsZero() || list[1].Expires.IsZero() || list[0].By != "00000000000000u2" {
			t.Errorf("links %+v, %v", list, err)
		}
	},
	32: func(t *testing.T, d *DB) {
		list, err := d.Trials().Trials(t.Context())
		if err != nil || len(list) != 1 || list[0].State != trials.Open || len(list[0].Clones) != 2 || !list[0].Clones[0].Sent || list[0].Clones[1].Problem == "" {
			t.Errorf("trials %+v, %v", list, err)
		}
	},
}

func TestMigrate_SandboxesFromBeforeCountAsUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	makeVersion(t, path, 22)
	d := upgraded(t, path)
	uses, err := d.LastUses().LastUses(t.Context())
	list, _, listed := d.Sandboxes().List(t.Context(), sandbox.Filter{})
	if err != nil || listed != nil || len(list) == 0 {
		t.Fatalf("%d sandboxes, %v, %v", len(list), err, listed)
	}
	for _, s := range list {
		if !uses[s.ID].Equal(s.Changed) {
			t.Errorf("%s was used at %s, want %s", s.Name, uses[s.ID], s.Changed)
		}
	}
}

func TestMigrate_PooledSandboxKeepsWhatItWasMadeFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	makeVersion(t, path, 7)
	old, err := connect(path)
	if err == nil {
		_, err = old.writer.ExecContext(t.Context(), `UPDATE sandboxes SET label = 'f1' WHERE name = 'spare'`)
		err = errors.Join(err, old.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err := upgraded(t, path).Sandboxes().ByName(t.Context(), "spare"); err != nil || b.Label != "" || b.Fingerprint != "f1" {
		t.Errorf("pooled: %+v, %v", b, err)
	}
}

func checkSamples(t *testing.T, d *DB, version int) {
	t.Helper()
	for v := 1; v <= version; v++ {
		check, ok := samples[v]
		if !ok {
			t.Fatalf("nothing checks the sample of version %d", v)
		}
		check(t, d)
	}
	var have, rows int
	const count = `SELECT max(version), count(*) FROM migrations`
	if err := d.reader.QueryRowContext(t.Context(), count).Scan(&have, &rows); err != nil || have != newest() || rows != newest() {
		t.Errorf("version %d with %d rows (%v), want %d", have, rows, err, newest())
	}
	var healthy string
	if err := d.reader.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&healthy); err != nil || healthy != "ok" {
		t.Errorf("integrity check: %s (%v)", healthy, err)
	}
}

func TestMigrate_UpgradedAndNewSchemaAreTheSame(t *testing.T) {
	want := schema(t, fresh(t))
	for version := range newest() {
		path := filepath.Join(t.TempDir(), "sandboxd.db")
		makeVersion(t, path, version)
		if got := schema(t, upgraded(t, path)); got != want {
			t.Errorf("from version %d:\n%s\nwant\n%s", version, got, want)
		}
	}
}

func schema(t *testing.T, d *DB) string {
	t.Helper()
	var all string
	const read = `SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name)`
	if err := d.reader.QueryRowContext(t.Context(), read).Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMigrate_RefusesANewerDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	makeVersion(t, path, newest())
	d := open(t, path)
	if _, err := d.writer.ExecContext(t.Context(), `INSERT INTO migrations VALUES (?, 'from the future', 1)`, newest()+1); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "written by a newer sandboxd") ||
		!strings.Contains(fault.Message(err), path) {
		t.Errorf("error is %v", err)
	}
}
