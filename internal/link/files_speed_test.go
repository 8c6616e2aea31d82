package link_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sandboxd/internal/wire"
)

const gib = 1 << 30

// endless gives so many bytes.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.left))
	e.left -= int64(n)
	return n, nil
}

// BenchmarkFiles is the way from sandboxd to the files and back, through a real link.
func BenchmarkFiles(b *testing.B) {
	s, root := connectFiles(b)
	b.Run("write 1 GiB", func(b *testing.B) {
		b.SetBytes(gib)
		for range b.N {
			if _, err := s.FileWrite(b.Context(), wire.FilePut{Path: "/big", Size: gib}, &endless{gib}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read 1 GiB", func(b *testing.B) {
		b.SetBytes(gib)
		for range b.N {
			_, r, err := s.FileRead(b.Context(), "/big", 0, -1)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r); err != nil || n != gib {
				b.Fatal(n, err)
			}
			r.Close()
		}
	})
	os.Remove(filepath.Join(root, "big"))
	b.Run("write and read 4 kB", func(b *testing.B) {
		content := bytes.Repeat([]byte("x"), 4096)
		for range b.N {
			if _, err := s.FileWrite(b.Context(), wire.FilePut{Path: "/small", Size: -1}, bytes.NewReader(content)); err != nil {
				b.Fatal(err)
			}
			_, r, err := s.FileRead(b.Context(), "/small", 0, -1)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, r)
			r.Close()
		}
	})
	os.Mkdir(filepath.Join(root, "many"), 0o755)
	for i := range 10_000 {
		os.WriteFile(filepath.Join(root, "many", fmt.Sprintf("Some-file-%d.txt", i*7919%10_000)), nil, 0o644)
	}
	b.Run("list 10000", func(b *testing.B) {
		for range b.N {
			l, err := s.FileList(b.Context(), "/many", "", 0)
			if err != nil || len(l.Entries) != 10_000 {
				b.Fatal(len(l.Entries), err)
			}
		}
	})
}

// BenchmarkPack packs 100,000 small files, beside GNU tar.
func BenchmarkPack(b *testing.B) {
	s, root := connectFiles(b)
	for i := range 1000 {
		dir := filepath.Join(root, "tree", fmt.Sprint(i%10), fmt.Sprint(i))
		os.MkdirAll(dir, 0o755)
		for j := range 100 {
			os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d.go", j)), bytes.Repeat([]byte("x"), 100+j*40), 0o644)
		}
	}
	b.Run("link", func(b *testing.B) {
		for range b.N {
			r, err := s.FilePack(b.Context(), "/tree", nil)
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.Copy(io.Discard, r)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(n)
			r.Close()
		}
	})
	b.Run("tar", func(b *testing.B) {
		for range b.N {
			out, err := exec.Command("sh", "-c", "tar cf - -C "+filepath.Join(root, "tree")+" . | cat > /dev/null").CombinedOutput()
			if err != nil {
				b.Fatalf("%s, %v", out, err)
			}
		}
	})
}

// BenchmarkUnpack unpacks 20,000 small files, beside GNU tar.
func BenchmarkUnpack(b *testing.B) {
	s, root := connectFiles(b)
	for i := range 200 {
		dir := filepath.Join(root, "tree", fmt.Sprint(i%10), fmt.Sprint(i))
		os.MkdirAll(dir, 0o755)
		for j := range 100 {
			os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d.go", j)), bytes.Repeat([]byte("x"), 100+j*40), 0o644)
		}
	}
	r, err := s.FilePack(b.Context(), "/tree", nil)
	if err != nil {
		b.Fatal(err)
	}
	archive, err := io.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(root, "tree.tar")
	os.WriteFile(file, archive, 0o644)
	n := 0
	b.Run("link", func(b *testing.B) {
		for range b.N {
			n++
			if _, err := s.FileUnpack(b.Context(), fmt.Sprint("/link", n), false, bytes.NewReader(archive)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tar", func(b *testing.B) {
		for range b.N {
			n++
			dir := filepath.Join(root, fmt.Sprint("tar", n))
			os.Mkdir(dir, 0o755)
			if out, err := exec.Command("sh", "-c", "cat "+file+" | tar xf - -C "+dir).CombinedOutput(); err != nil {
				b.Fatalf("%s, %v", out, err)
			}
		}
	})
}
