package exec

import (
	"strings"
	"testing"
)

func TestTitle_SaysTheProgramAndNothingThatMayBeSecret(t *testing.T) {
	for _, c := range []struct {
		command []string
		want    string
	}{
		{[]string{"make", "test", "-j4"}, "make test"},
		{[]string{"/usr/bin/python3", "train.py"}, "python3 train.py"},
		{[]string{"mysql", "-phunter2"}, "mysql"},
		{[]string{"curl", "https://user:hunter2@example.com"}, "curl"},
		{[]string{"sh", "-c", "sleep 3600"}, "sleep 3600"},
		{[]string{"/bin/bash", "-lc", "go build ./..."}, "go build"},
		{Shell("  npm run dev\n"), "npm run"},
		{Shell("TOKEN=hunter2 OTHER=x ./deploy.sh now"), "deploy.sh now"},
		{Shell("TOKEN=hunter2"), "command"},
		{Shell(`"$HOME/run"`), "command"},
		{Shell("export TOKEN=hunter2; deploy"), "export"},
		{Shell(""), "command"},
		{[]string{"\x1b]0;x\x07"}, "command"},
		{[]string{strings.Repeat("x", 1000)}, strings.Repeat("x", titleWord)},
		{[]string{"sh", "-c"}, "sh"},
		{[]string{"git", "\u202e"}, "git"},
	} {
		if got := Title(c.command); got != c.want {
			t.Errorf("%q: %q, want %q", c.command, got, c.want)
		}
	}
}
