package git

import (
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

func TestCheck_TakesWhatCanBeFetched(t *testing.T) {
	for _, s := range []Source{
		{URL: "https://git.example.com/team/templates.git"},
		{URL: "https://bot@git.example.com:8443/t.git", Token: "abc", Ref: "v1.2+rc@2", Path: "templates/rust"},
		{URL: "ssh://git@git.example.com:2222/~/t", HostKeys: "git.example.com ssh-ed25519 AAAA\n[h]:22 ecdsa-sha2-nistp256 BBBB=\n"},
		{URL: "git@github.example:team/t.git", Ref: "feature/a-b"},
		{URL: "git://127.0.0.1:9418/t"}, {URL: "https://[::1]:8443/t"},
	} {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestCheck_RefusesWhatIsDangerousOrMakesNoSense(t *testing.T) {
	good := "https://git.example.com/t.git"
	for field, list := range map[string][]Source{
		"url": {{}, {URL: "/srv/t.git"}, {URL: "file:///srv/t.git"}, {URL: "./t"}, {URL: "http://git.example.com/t"}, {URL: "ftp://h/t"}, {URL: "ext::sh -c id"}, {URL: "a@b::x"},
			{URL: "-oProxyCommand=id@h:x"}, {URL: "ssh://-oProxyCommand=id/x"}, {URL: "git@h:-x"}, {URL: "https://u:secret@h/t"}, {URL: "https:///t"}, {URL: "https://h"},
			{URL: "https://h/t?a=b"}, {URL: "https://h/t#x"}, {URL: "https://h/a b"}, {URL: "https://h/\x00"}, {URL: "https://h/" + strings.Repeat("x", maxURL)}, {URL: "--upload-pack=id"}},
		"ref":      {{URL: good, Ref: "-b"}, {URL: good, Ref: "a..b"}, {URL: good, Ref: "a b"}, {URL: good, Ref: "a:b"}, {URL: good, Ref: "a^"}, {URL: good, Ref: "a.lock"}, {URL: good, Ref: strings.Repeat("x", maxRef+1)}},
		"path":     {{URL: good, Path: "/etc"}, {URL: good, Path: "../x"}, {URL: good, Path: "a/../b"}, {URL: good, Path: "."}, {URL: good, Path: "a//b"}, {URL: good, Path: "a\nb"}},
		"token":    {{URL: "ssh://git@h/t", Token: "x"}, {URL: good, Token: "a b"}, {URL: good, Token: "a\nHost: b"}},
		"key":      {{URL: good, Key: "x"}, {URL: "ssh://git@h/t", Key: "x"}, {URL: "ssh://git@h/t", Key: "-----BEGIN RSA PRIVATE KEY-----\n"}},
		"host_key": {{URL: good, HostKeys: "h ssh-ed25519 AAAA"}, {URL: "ssh://git@h/t", HostKeys: "ssh-ed25519 AAAA"}, {URL: "ssh://git@h/t", HostKeys: "h ssh-ed25519 AAAA\nProxyCommand id"}},
	} {
		for _, s := range list {
			if err := s.Check(); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != field {
				t.Errorf("%+v: %v, want something about %s", s, err, field)
			}
		}
	}
}
