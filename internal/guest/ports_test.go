package guest

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/wire"
)

const tableHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// line is a socket as the kernel's tables have it.
func line(address, state, inode string) string {
	return "   0: " + address + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000  1000        0 " + inode +
		" 1 0000000000000000 100 0 0 10 0\n"
}

// tables gives ports that reads these texts.
func tables(t *testing.T, texts ...string) *ports {
	t.Helper()
	p := &ports{hidden: func(string) bool { return false }}
	for i, text := range texts {
		file := filepath.Join(t.TempDir(), strconv.Itoa(i))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		p.tables = append(p.tables, file)
	}
	return p
}

func TestPorts_AreReadFromTheKernelsTables(t *testing.T) {
	four := tableHead + line("0100007F:0BB8", listens, "0") + // 127.0.0.1:3000
		line("00000000:1F90", listens, "0") + // 0.0.0.0:8080
		line("0100007F:1F90", listens, "0") + // the same, on loopback alone
		line("0B00007F:A0A1", listens, "0") + // 127.0.0.11: the engine's resolver
		line("0100007F:1388", "01", "0") // 5000: a connection
	six := tableHead + line("00000000000000000000000001000000:1770", listens, "0") + // [::1]:6000
		line("0000000000000000FFFF00000100007F:1B58", listens, "0") + // ::ffff:127.0.0.1:7000
		line("00000000000000000000000000000000:0BB8", listens, "0") // [::]:3000
	got := tables(t, four, six, "").list()
	want := wire.Ports{{Port: 3000, Address: "::"}, {Port: 6000, Address: "::1"}, {Port: 7000, Address: "127.0.0.1"},
		{Port: 8080, Address: "0.0.0.0"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	if err := got.Check(); err != nil {
		t.Errorf("the other end refuses it: %v", err)
	}
}

func TestPorts_OddTablesShowNothing(t *testing.T) {
	odd := "\n\nrubbish\n" + line("zz00007F:0BB8", listens, "0") + line("0100007F", listens, "0") + line("0100007F:0000", listens, "0") +
		line("0100007F:FFFFF", listens, "0") + line("01:0BB8", listens, "0") + strings.Repeat("x", 1<<20)
	if got := tables(t, odd).list(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	if got := (&ports{tables: []string{"/no/such"}}).list(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestPorts_ManyAreCut(t *testing.T) {
	var b strings.Builder
	for port := 60000; port > 1000; port-- {
		b.WriteString(line("00000000:"+strings.ToUpper(strconv.FormatInt(int64(port), 16)), listens, "0"))
	}
	got := tables(t, b.String()).list()
	if len(got) != wire.MaxOpenPorts || got.Check() != nil {
		t.Errorf("got %d ports, %v", len(got), got.Check())
	}
}

func TestPorts_KernelAddressesAreReadWordByWord(t *testing.T) {
	for text, want := range map[string]string{"0100007F": "127.0.0.1", "0200A8C0": "192.168.0.2",
		"B80D0120000000000000000001000000": "2001:db8::1"} {
		if got, ok := kernelAddr(text); !ok || got != netip.MustParseAddr(want) {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func FuzzPorts(f *testing.F) {
	f.Add(tableHead + line("0100007F:0BB8", listens, "0"))
	f.Fuzz(func(t *testing.T, text string) {
		l := tables(t, text).list()
		if err := l.Check(); err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
	})
}

// The listener is handed to a program, as a server that was started would have it.
func TestPorts_TellTheProgramThatListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("sleep", "1000")
	cmd.ExtraFiles = []*os.File{file}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	port := l.Addr().(*net.TCPAddr).Port
	p := newPorts(func(string) bool { return false })
	found := func() wire.PortOpen {
		p.taken = p.taken.Add(-portsPause)
		all := p.list()
		if i := slices.IndexFunc(all, func(o wire.PortOpen) bool { return o.Port == port }); i >= 0 {
			return all[i]
		}
		return wire.PortOpen{}
	}
	want := wire.PortOpen{Port: port, Address: "127.0.0.1", Process: "sleep", PID: cmd.Process.Pid}
	if got := found(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	file.Close()
	l.Close()
	cmd.Process.Kill()
	cmd.Wait()
	within(t, "the end of the port", func() bool { return found().Port == 0 })
}
