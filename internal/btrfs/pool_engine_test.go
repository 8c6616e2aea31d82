//go:build engine

package btrfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

const testSize = 512 << 20

// testDisk makes and mounts a pool, until the test's end.
func testDisk(t *testing.T, host string, size int64) Disk {
	t.Helper()
	d := Disk{Dir: filepath.Join(host, "pool"), File: filepath.Join(host, "pool.img")}
	if err := d.Format(t.Context(), size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Unmount(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Mount(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func openAt(t *testing.T, d Disk) *Pool {
	t.Helper()
	p, err := Open(d.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func testPool(t *testing.T) (*Pool, Disk) {
	t.Helper()
	d := testDisk(t, t.TempDir(), testSize)
	return openAt(t, d), d
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("got %v, want the kind %s", err, want)
	}
}

func write(t *testing.T, p *Pool, name, file, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(p.Path(name), file), []byte(text), 0o600))
}

func reads(t *testing.T, p *Pool, name, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(p.Path(name), file)); err != nil || string(got) != want {
		t.Errorf("%s in %s is %.40q (%v), want %.40q", file, name, got, err, want)
	}
}

// fill writes until that fails, some megabytes at most, and says how much it was.
func fill(t *testing.T, p *Pool, name string, most int) (wrote int, failed error) {
	t.Helper()
	f, err := os.Create(filepath.Join(p.Path(name), fmt.Sprintf("filling-%d", time.Now().UnixNano())))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	piece := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	for wrote < most && err == nil {
		var n int
		n, err = f.Write(piece)
		wrote += n
	}
	return wrote, errors.Join(err, f.Sync())
}

// empty removes all files of a folder.
func empty(t *testing.T, p *Pool, name string) {
	t.Helper()
	entries, err := os.ReadDir(p.Path(name))
	must(t, err)
	for _, e := range entries {
		must(t, os.Remove(filepath.Join(p.Path(name), e.Name())))
	}
	must(t, p.Sync(t.Context()))
}

// waitUsed waits until the kernel counts at most so many bytes: it removes subvolumes in the background.
func waitUsed(t *testing.T, p *Pool, name string, most int64) {
	t.Helper()
	var used int64
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		must(t, p.Sync(t.Context()))
		if used, err = p.Used(name); err != nil || used <= most {
			break
		}
	}
	if err != nil || used > most {
		t.Fatalf("%s takes %d (%v)", name, used, err)
	}
}

func TestPool_FoldersAreMadeCopiedSwappedAndRemoved(t *testing.T) {
	p, d := testPool(t)
	if has, err := p.Has("a"); err != nil || has {
		t.Errorf("it has a: %v, %v", has, err)
	}
	must(t, p.Create("a"))
	wantKind(t, p.Create("a"), fault.Conflict)
	st, err := os.Stat(p.Path("a"))
	if err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("it is %v (%v)", st, err)
	}
	write(t, p, "a", "file", "one") // and no sync: the copy has it all the same
	must(t, p.Copy("a", "b"))
	wantKind(t, p.Copy("a", "b"), fault.Conflict)
	wantKind(t, p.Copy("none", "c"), fault.NotFound)
	write(t, p, "a", "file", "two")
	write(t, p, "b", "more", "x")
	reads(t, p, "b", "file", "one")
	must(t, p.Copy("b", "c"))
	must(t, p.Replace("a", "c"))
	reads(t, p, "a", "file", "one")
	wantKind(t, p.Replace("a", "c"), fault.NotFound)
	wantKind(t, p.Replace("none", "b"), fault.NotFound)
	reads(t, p, "b", "file", "one")
	if list, err := p.List(); err != nil || !slices.Equal(list, []string{"a", "b"}) {
		t.Errorf("there are %q (%v)", list, err)
	}
	must(t, p.Remove("b"), p.Remove("b"))
	for _, name := range []string{"", ".", "..", "../x", "a/b", "x.new", string(make([]byte, 300)), ".hidden"} {
		wantKind(t, p.Create(name), fault.Invalid)
	}
	space, err := p.Space()
	if err != nil || space.Size < testSize*9/10 || space.Free <= 0 || space.Free > space.Size || space.ReadOnly {
		t.Errorf("it has %+v (%v)", space, err)
	}
	if beside, err := d.Space(); err != nil || beside != space {
		t.Errorf("it has %+v, from beside %+v (%v)", space, beside, err)
	}
	wantKind(t, d.Remove(), fault.Conflict)
	wantKind(t, d.Unmount(), fault.Conflict)
	must(t, p.Close())
	again := openAt(t, d)
	reads(t, again, "a", "file", "one")
	must(t, again.Close())
	must(t, d.Unmount(), d.Unmount(), d.Mount(t.Context()), d.Mount(t.Context()))
	reads(t, openAt(t, d), "a", "more", "x")
}

func TestPool_CopiesTakeTheSameWhateverTheirSize(t *testing.T) {
	p, _ := testPool(t)
	must(t, p.Create("small"), p.Create("large"))
	_, err := fill(t, p, "large", 150<<20)
	must(t, err)
	for i := range 3000 {
		write(t, p, "large", fmt.Sprint("file-", i), "content of a file\n")
	}
	must(t, p.Sync(t.Context()))
	took := map[string]time.Duration{}
	for _, name := range []string{"small", "large"} {
		var all []time.Duration
		for i := range 9 {
			began := time.Now()
			must(t, p.Copy(name, fmt.Sprint(name, "-", i)))
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		took[name] = all[len(all)/2]
		t.Logf("a copy of the %s one takes %s at p50, from %s to %s", name, took[name], all[0], all[8])
	}
	if took["large"] > 10*took["small"]+200*time.Millisecond {
		t.Errorf("copies take %v", took)
	}
	must(t, p.Sync(t.Context()))
	if used, err := p.Used("large"); err != nil || used < 150<<20 {
		t.Errorf("it takes %d (%v)", used, err)
	}
	if used, err := p.Used("large-3"); err != nil || used > 1<<20 {
		t.Errorf("the copy takes %d (%v)", used, err)
	}
}

func TestPool_QuotasHoldAndAFullHomeCanBeEmptied(t *testing.T) {
	p, _ := testPool(t)
	must(t, p.Create("a"), p.Limit("a", 20<<20))
	wrote, failed := fill(t, p, "a", 100<<20)
	if !errors.Is(failed, unix.EDQUOT) || wrote > 21<<20 || wrote < 15<<20 {
		t.Fatalf("it took %d MiB: %v", wrote>>20, failed)
	}
	for i := range 100000 { // the rest of it
		if os.WriteFile(filepath.Join(p.Path("a"), fmt.Sprint("small-", i)), []byte("x"), 0o600) != nil {
			break
		}
	}
	must(t, p.Sync(t.Context()))
	if used, err := p.Used("a"); err != nil || used < 15<<20 || used > 21<<20 {
		t.Errorf("it takes %d MiB (%v)", used>>20, err)
	}
	must(t, p.Copy("a", "copy"), p.Limit("copy", 10<<20)) // less than is in it, but none of that was written there
	if wrote, failed := fill(t, p, "copy", 100<<20); !errors.Is(failed, unix.EDQUOT) || wrote > 11<<20 || wrote < 7<<20 {
		t.Errorf("the copy took %d MiB: %v", wrote>>20, failed)
	}
	empty(t, p, "a")
	if _, err := fill(t, p, "a", 1<<20); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("the copy has what it had written, and it takes more: %v", err)
	}
	must(t, p.Remove("copy"))
	waitUsed(t, p, "a", 1<<20)
	if _, err := fill(t, p, "a", 8<<20); err != nil {
		t.Errorf("emptied, it takes no more: %v", err)
	}
	must(t, p.Create("b"), p.Replace("a", "b"), p.Move("a", "b"), p.Move("b", "a")) // which gets the limit
	if wrote, failed := fill(t, p, "a", 100<<20); !errors.Is(failed, unix.EDQUOT) {
		t.Errorf("replaced, it took %d MiB: %v", wrote>>20, failed)
	}
	if limit, err := p.LimitOf("a"); err != nil || limit != 20<<20 {
		t.Errorf("the limit is %d (%v)", limit, err)
	}
	must(t, p.Limit("a", 0))
	if limit, err := p.LimitOf("a"); err != nil || limit != 0 {
		t.Errorf("the limit is %d (%v)", limit, err)
	}
	if _, err := fill(t, p, "a", 30<<20); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	wantKind(t, p.Limit("none", 1), fault.NotFound)
	wantKind(t, p.Limit("a", -1), fault.Invalid)
}

// TestPool_ALimitHoldsWhateverIsRestored fills a home, restores a copy of it, and fills that.
func TestPool_ALimitHoldsWhateverIsRestored(t *testing.T) {
	p, _ := testPool(t)
	must(t, p.Create("home"), p.Limit("home", 20<<20))
	_, err := fill(t, p, "home", 15<<20)
	must(t, err)
	for range 3 {
		must(t, p.Copy("home", "copy"), p.Copy("copy", "next"), p.Replace("home", "next"), p.Remove("copy"), p.Sync(t.Context()))
		if used, err := p.Used("home"); err != nil || used < 14<<20 {
			t.Fatalf("it takes %d MiB (%v)", used>>20, err)
		}
		fill(t, p, "home", 100<<20)
	}
	var has int64
	entries, err := os.ReadDir(p.Path("home"))
	must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		has += info.Size()
	}
	if room, err := p.Room("home"); err != nil || has > 21<<20 || room > 2<<20 {
		t.Errorf("it has %d MiB, and room for %d (%v)", has>>20, room>>20, err)
	}
	must(t, p.Create("other"), p.Limit("other", 20<<20))
	_, err = fill(t, p, "other", 10<<20)
	must(t, err, p.Replace("home", "other")) // limited itself, as one that an archive was unpacked into
	empty(t, p, "home")
	waitUsed(t, p, "home", 1<<20)
	must(t, p.Remove("home"), p.Sync(t.Context()))
}

// TestOpen_DropsTheCountsOfWhatIsGone looks at what the kernel has written down.
func TestOpen_DropsTheCountsOfWhatIsGone(t *testing.T) {
	p, d := testPool(t)
	for i := range 5 {
		name := fmt.Sprint("home-", i)
		must(t, p.Create(name), p.Limit(name, 20<<20))
		_, err := fill(t, p, name, 1<<20)
		must(t, err, p.Remove(name))
	}
	must(t, p.Create("home"), p.Limit("home", 20<<20))
	count := func() (n int) {
		must(t, search(p.volumes, searchKey{tree: treeQuotas, minOffset: firstSubvolume, maxOffset: lastGroup, minType: itemGroupUsage, maxType: itemGroupUsage},
			func(uint64, []byte) { n++ }))
		return n
	}
	for end := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		must(t, p.Sync(t.Context()), p.Close())
		if p = openAt(t, d); count() == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d are left, want that of the home and of its group", count())
		}
	}
	if limit, err := p.LimitOf("home"); err != nil || limit != 20<<20 {
		t.Errorf("the limit is %d (%v)", limit, err)
	}
}

// TestPool_RoomOfDeletedFilesCanBeUsedForNames fills the pool with files and deletes most of each part of the disk.
func TestPool_RoomOfDeletedFilesCanBeUsedForNames(t *testing.T) {
	d := testDisk(t, t.TempDir(), 4*testSize) // a small one has few parts
	p := openAt(t, d)
	must(t, p.Create("a"))
	piece := bytes.Repeat([]byte("0123456789abcdef"), 16<<10)
	name := func(i int) string { return filepath.Join(p.Path("a"), fmt.Sprint("f-", i)) }
	n := 0
	for ; os.WriteFile(name(n), piece, 0o600) == nil; n++ {
	}
	must(t, p.Sync(t.Context()))
	for i := range n + 1 {
		if i%10 != 0 {
			os.Remove(name(i))
		}
	}
	id, err := fileSystemID(p.volumes)
	must(t, err)
	size := filepath.Join("/sys/fs/btrfs", uuid(id), "allocation/data/disk_total")
	var left int
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		must(t, p.Sync(t.Context()), p.Pack(t.Context()))
		text, err := os.ReadFile(size)
		must(t, err)
		if left, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || left < n*len(piece)/2 {
			break
		}
	}
	if left >= n*len(piece)/2 {
		t.Errorf("of %d MiB, %d MiB of %s are for data", n*len(piece)>>20, left>>20, d)
	}
}

func TestPack_EndsWithItsContext(t *testing.T) {
	p, _ := testPool(t)
	for _, begun := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		if begun {
			time.AfterFunc(time.Millisecond, cancel)
		} else {
			cancel()
		}
		if err := p.Pack(ctx); !begun && !errors.Is(err, context.Canceled) || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	must(t, p.Pack(t.Context()))
}

func TestPool_AFullOneSaysHowItIsMadeLarger(t *testing.T) {
	p, _ := testPool(t)
	must(t, p.Create("a"))
	if _, err := fill(t, p, "a", 2*testSize); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	err := explain(unix.ENOSPC, "copy a folder")
	wantKind(t, err, fault.Unavailable)
	if !bytes.Contains([]byte(err.Error()), []byte("sandboxd pool grow")) {
		t.Error(err)
	}
	must(t, p.Remove("a"), p.Sync(t.Context()), p.Create("b"))
}

// TestRemove_TakesNestedSubvolumesToo has a sandbox make some.
func TestRemove_TakesNestedSubvolumesToo(t *testing.T) {
	p, d := testPool(t)
	outside := filepath.Join(d.Dir, "outside")
	must(t, os.Mkdir(outside, 0o700), p.Create("a"), p.Create("other"))
	write(t, p, "other", "file", "kept")
	nest := func(at string) string {
		t.Helper()
		dir, err := os.Open(filepath.Dir(at))
		must(t, err)
		defer dir.Close()
		must(t, createSubvolume(dir, filepath.Base(at)))
		return at
	}
	must(t, os.MkdirAll(filepath.Join(p.Path("a"), "deep/er"), 0o700))
	for i := range 120 { // more than one answer of the kernel's has
		nest(filepath.Join(p.Path("a"), "deep/er", fmt.Sprintf("%0200d", i)))
	}
	inner := nest(filepath.Join(p.Path("a"), "deep/one"))
	inner = nest(filepath.Join(inner, "two"))
	must(t, os.Symlink(p.Path("other"), filepath.Join(inner, "link")), os.Chmod(filepath.Join(p.Path("a"), "deep"), 0))
	must(t, os.WriteFile(filepath.Join(nest(filepath.Join(inner, "three")), "file"), []byte("x"), 0o600))
	must(t, p.Copy("a", "copy"), p.Create("b"))
	must(t, p.Replace("a", "b"), p.Remove("copy"))
	reads(t, p, "other", "file", "kept")
	if list, err := p.list(); err != nil || !slices.Equal(list, []string{"a", "other"}) {
		t.Errorf("there are %q (%v)", list, err)
	}
	if ids, err := childrenOf(p.volumes, 5); err != nil || len(ids) != 2 {
		t.Errorf("the subvolumes %d are left (%v)", ids, err)
	}
}

func TestOpen_RemovesWhatACrashHasLeft(t *testing.T) {
	p, d := testPool(t)
	must(t, p.Create("a"))
	for _, name := range []string{"a.new", "b.new"} {
		must(t, createSubvolume(p.volumes, name))
	}
	write(t, p, "a", "file", "kept")
	must(t, p.Create("b")) // whatever is under way of it
	must(t, createSubvolume(p.volumes, "c.new"))
	if list, err := p.List(); err != nil || !slices.Equal(list, []string{"a", "b"}) {
		t.Errorf("there are %q (%v)", list, err)
	}
	must(t, p.Close())
	again := openAt(t, d)
	if list, err := again.list(); err != nil || !slices.Equal(list, []string{"a", "b"}) {
		t.Errorf("there are %q (%v)", list, err)
	}
	reads(t, again, "a", "file", "kept")
}

func TestPool_AReadOnlyOneSaysSo(t *testing.T) {
	p, d := testPool(t)
	must(t, p.Create("a"), createSubvolume(p.volumes, "b.new"))
	write(t, p, "a", "file", "kept")
	must(t, unix.Mount("", d.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for name, err := range map[string]error{
		"create": p.Create("c"), "copy": p.Copy("a", "c"), "remove": p.Remove("a"), "limit": p.Limit("a", 1<<20),
	} {
		if !fault.Is(err, fault.Unavailable) || !bytes.Contains([]byte(err.Error()), []byte("read-only")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, p.Close(), d.Mount(t.Context()))
	reads(t, openAt(t, d), "a", "file", "kept")
}

func TestOpen_RefusesWhatIsNoPool(t *testing.T) {
	_, err := Open(t.TempDir())
	wantKind(t, err, fault.Invalid)
	_, err = Open(filepath.Join(t.TempDir(), "none"))
	wantKind(t, err, fault.Invalid)
}

func TestPool_ManyAtOnce(t *testing.T) {
	p, _ := testPool(t)
	must(t, p.Create("a"))
	write(t, p, "a", "file", "x")
	failed := make(chan error)
	for i := range 8 {
		go func() {
			one, two := fmt.Sprint("x-", i), fmt.Sprint("y-", i)
			failed <- inTurn(
				func() error { return p.Copy("a", one) },
				func() error { return p.Copy("a", two) },
				func() error { return p.Limit(one, 5<<20) },
				func() error { return p.Replace(one, two) },
				func() error { return p.Remove(one) },
			)
		}()
	}
	for range 8 {
		must(t, <-failed)
	}
	if list, err := p.list(); err != nil || !slices.Equal(list, []string{"a"}) {
		t.Errorf("there are %q (%v)", list, err)
	}
}
