//go:build e2e

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// outside are forms of paths that lead, or seem to lead, to something that the sandbox's user may not read or change: another
// user's file, the kernel's, sandboxd's own, the host's. They stand in the query as they are, encoded already.
func outside() []string {
	const root = "..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f"
	list := []string{
		// out of the home, and of the root
		"../etc/shadow", "../../etc/shadow", "../../../../../../../../etc/shadow", "..", "../", "../..", "./../x", "a/../../x", "~/../x", "~/../../etc/shadow", "/..", "/../etc/shadow",
		"/../../../../etc/shadow", "/home/agent/../../../etc/shadow", "x/../../../../etc/shadow", "....//....//etc/shadow", "..;/etc/shadow",
		// encoded once, twice, thrice, and in other ways
		root + "etc/shadow", "%2e%2e/%2e%2e/etc/shadow", "%2e%2e%2f%2e%2e%2fetc%2fshadow", "..%252f..%252fetc%252fshadow", "%252e%252e%252fetc%252fshadow", "%25252e%25252e%25252f",
		"..%c0%af..%c0%afetc/shadow", "..%c1%9c..%c1%9cetc/shadow", "%c0%ae%c0%ae/%c0%ae%c0%ae/etc/shadow", "%e0%80%ae%e0%80%ae/etc/shadow", "..%u2215..%u2215etc/shadow", "%uff0e%uff0e/etc/shadow",
		"%ef%bc%8e%ef%bc%8e/etc/shadow", "..%5c..%5cetc%5cshadow", "..\\..\\etc\\shadow", "%2e%2e%5cetc%5cshadow", "..%09/etc/shadow", "..%0a/etc/shadow", "..%0d%0a/etc/shadow", "..+/etc/shadow",
		// zero bytes and other ends
		"%00", "%00/etc/shadow", "notes%00.txt", "/etc/shadow%00.png", "../etc/shadow%00", "/etc/shadow%2500", "/etc/shadow%20", "/etc/shadow/", "/etc/shadow/.", "/etc/shadow/..", "/etc//shadow", "//etc/shadow",
		"///etc///shadow", "/./etc/./shadow", "file:///etc/shadow", "file%3a%2f%2f%2fetc%2fshadow", "http://127.0.0.1/etc/shadow", "C:%5cetc%5cshadow", "%5c%5chost%5cshare",
		// long ones
		strings.Repeat("a/", 2048) + "x", strings.Repeat("a", 4097), strings.Repeat("a", 256), "/" + strings.Repeat("../", 1300) + "etc/shadow", strings.Repeat("..%2f", 500) + "etc/shadow",
		// what the kernel and sandboxd keep
		"/proc/1/root/etc/shadow", "/proc/self/root/etc/shadow", "/proc/self/environ", "/proc/self/mem", "/proc/1/environ", "/proc/self/fd/0", "/proc/self/exe", "/proc/self/cwd/etc/shadow", "/proc/kcore",
		"/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/fs/cgroup", "/.sandboxd/link/link.sock", "/.sandboxd/guest", "/.sandboxd", "/.sandboxd/../.sandboxd/guest", "/dev/mem", "/dev/zero", "/dev/full",
		"/dev/stdin", "/dev/fd/0", "/dev/tty", "/dev/ptmx", "/root/secret", "/root/.ssh/id", "/etc/shadow", "/etc/gshadow",
		// what waits in the home: links, loops, pipes, sockets, hard links
		"traps/to-shadow", "traps/to-root/secret", "traps/to-root-relative/secret", "traps/chain9", "traps/to-proc/1/environ", "traps/loop", "traps/loop/x", "traps/self", "traps/pipe", "traps/socket", "traps/to-pipe",
		"traps/to-zero", "traps/to-mem", "traps/dir-link/../../root/secret", "traps/to-guest", "traps/deep/link/shadow", "traps/dangling/x",
	}
	return list
}

// TestFiles_NoPathLeadsOutside asks for each form in every way that there is to ask, and looks afterwards that nothing outside has
// been told or changed.
func TestFiles_NoPathLeadsOutside(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	container := s.container("lab")
	engine(t, "exec", "-u", "0", container, "sh", "-c", `echo the-secret > /root/secret && chmod 600 /root/secret && chmod 700 /root && echo 'the-secret:x:1' >> /etc/shadow && mkdir -p /root/.ssh && echo the-secret > /root/.ssh/id`)
	s.in(`mkdir -p traps/deep && cd traps && ln -s /etc/shadow to-shadow && ln -s /root to-root && ln -s ../../../root to-root-relative && ln -s /proc to-proc &&
		ln -s loop loop && ln -s . self && mkfifo pipe && ln -s pipe to-pipe && ln -s /dev/zero to-zero && ln -s /dev/mem to-mem && ln -s / dir-link && ln -s /.sandboxd/guest to-guest &&
		ln -s /etc deep/link && ln -s nowhere dangling && ln -s /root/secret chain0 && for n in 1 2 3 4 5 6 7 8 9; do ln -s chain$((n-1)) chain$n; done
		python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")' || true`)
	state := func() string {
		return engine(t, "exec", "-u", "0", container, "sh", "-c",
			`sha256sum /etc/shadow /etc/gshadow /etc/passwd /root/secret /root/.ssh/id /.sandboxd/guest; ls -la --time-style=+%s /root /etc /.sandboxd /dev | grep -v ' pts$'; stat -c '%a %U' /etc/shadow /root`)
	}
	before := state()
	list := outside()
	if len(list) < 60 {
		t.Fatalf("only %d forms", len(list))
	}
	for _, path := range list {
		s.tryPath(path)
		s.tryCarrying(path)
	}
	if stolen := s.in(`grep -rIls the-secret ~ 2>/dev/null || true`); stolen != "" {
		t.Errorf("stolen: %s", stolen)
	}
	if after := state(); after != before {
		t.Errorf("changed outside:\n%s\nbefore:\n%s", after, before)
	}
	if got := s.file("GET", "?path=/etc/hostname", "").is(200); len(got.body) == 0 {
		t.Error("what everybody may read cannot be read")
	}
}

// tryPath asks for a path in every way that has one in its query.
func (s *server) tryPath(path string) {
	s.t.Helper()
	for _, ask := range []struct{ method, what, body string }{
		{"GET", "?path=" + path, ""}, {"GET", "?path=" + path + "&stat=true", ""}, {"GET", "?path=" + path + "&limit=5", ""}, {"GET", "?archive=tar&path=" + path, ""},
		{"GET", "?archive=zip&path=" + path, ""}, {"PUT", "?path=" + path, "evil"}, {"PUT", "?path=" + path + "&mode=0777&upload=u1", "evil"}, {"PUT", "?extract=tar&path=" + path, "evil"},
		{"DELETE", "?path=" + path + "&permanent=true", ""}, {"DELETE", "?path=" + path, ""},
	} {
		if strings.HasPrefix(path, "traps/") && ask.method == "DELETE" {
			continue // the traps are the user's own to delete; what they lead to is looked at
		}
		status, text := s.rawFiles(ask.method, ask.what, ask.body)
		s.harmless(ask.method+" "+ask.what, status, text)
	}
}

// tryCarrying moves and copies from a path, and to it.
func (s *server) tryCarrying(path string) {
	s.t.Helper()
	plain, err := url.QueryUnescape(path)
	if err != nil {
		return
	}
	asks := [][2]string{
		{":copy", fmt.Sprintf(`{"from":["traps/deep"],"to_encoded":%q}`, url.PathEscape(plain))},
		{":copy", fmt.Sprintf(`{"from_encoded":[%q],"to":"stolen"}`, url.PathEscape(plain))},
	}
	if !strings.HasPrefix(plain, "traps/") { // which stay
		asks = append(asks, [2]string{":move", fmt.Sprintf(`{"from_encoded":[%q],"to":"stolen"}`, url.PathEscape(plain))})
	}
	for _, ask := range asks {
		status, text := s.rawFiles("POST", ask[0], ask[1])
		s.harmless(ask[0]+" "+ask[1], status, text)
	}
}

// harmless fails the test when an answer has what nobody may read, or is none.
func (s *server) harmless(what string, status int, text string) {
	s.t.Helper()
	if strings.Contains(text, "the-secret") {
		s.t.Errorf("%.200s told the secret", what)
	}
	if status >= 500 && status != http.StatusServiceUnavailable {
		s.t.Errorf("%.200s: %d %.200s", what, status, text)
	}
}

// rawFiles asks with an address that no client library has a look at, and takes at most a megabyte of the answer.
func (s *server) rawFiles(method, what, body string) (status int, text string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(callLimit)); err != nil {
		s.t.Fatal(err)
	}
	what = strings.NewReplacer(" ", "%20", "\n", "%0a").Replace(what)
	head := fmt.Sprintf("%s /api/v1/sandboxes/lab/files%s HTTP/1.1\r\nHost: localhost:%s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n", method, what, s.addr[strings.LastIndex(s.addr, ":")+1:], s.token)
	if method == "POST" {
		head += "Content-Type: application/json\r\n"
	}
	if strings.Contains(what, "upload=") {
		head += fmt.Sprintf("Content-Range: bytes 0-%d/%d\r\n", len(body)-1, len(body))
	}
	if _, err := io.WriteString(conn, head+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)); err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatalf("%s %.200s: %v", method, what, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil && !slices.Contains([]string{"GET"}, method) {
		s.t.Fatalf("%s %.200s: %v", method, what, err)
	}
	return resp.StatusCode, string(b)
}

// TestFiles_NamesAreShownAndServedAsTheyAre also those that were made to deceive.
func TestFiles_NamesAreShownAndServedAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	names := []string{
		"with\nnewline", "tab\there", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "<img src=x onerror=alert(1)>", `quote"back\slash`, "percent%2e%2e", "plus+and space", "-rf", "~", "\xff\xfe", "ü", "u\u0308",
		"a;b&c=d#e?f", "..hidden", "...", strings.Repeat("n", 255), " ", "CON", "a\rb",
	}
	for i, name := range names {
		path := "/home/agent/names/" + name
		s.file("PUT", "?parents=true&path="+url.QueryEscape(path), fmt.Sprint(i)).is(201)
		got := s.file("GET", "?path="+url.QueryEscape(path), "").is(200)
		if string(got.body) != fmt.Sprint(i) || strings.ContainsAny(got.head.Get("Content-Disposition"), "\r\n\x1b\u202e") {
			t.Errorf("%q: %q, %v", name, got.body, got.head)
		}
	}
	var page struct {
		Entries []struct {
			Name    string
			Encoded string `json:"name_encoded"`
		}
	}
	s.file("GET", "?path=names", "").is(200).into(&page)
	var told []string
	for _, e := range page.Entries {
		if e.Encoded != "" {
			var err error
			if e.Name, err = url.PathUnescape(e.Encoded); err != nil {
				t.Error(err)
			}
		}
		told = append(told, e.Name)
	}
	slices.Sort(told)
	slices.Sort(names)
	if !slices.Equal(told, names) {
		t.Errorf("told %q", told)
	}
}
