package guest

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// smallSpool has room for 64 bytes in memory and 256 in its file.
func smallSpool(folders ...string) *spool {
	s := newSpool(folders...)
	s.memory, s.file = 64, 256
	return s
}

// pattern is n bytes that are as they are because of where they are.
func pattern(from, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		at := from + int64(i)
		b[i] = byte(at ^ at>>8 ^ at>>16)
	}
	return b
}

func TestSpool_GivesEveryByteThoughItsFileGoesRound(t *testing.T) {
	s := smallSpool(t.TempDir())
	defer s.close()
	const total = 20_000
	var writing sync.WaitGroup
	writing.Go(func() {
		for at := int64(0); at < total; {
			n := min(1+at%97, total-at)
			if _, err := s.Write(pattern(at, n)); err != nil {
				t.Error(err)
				return
			}
			at += n
		}
	})
	buf := make([]byte, 50)
	for at := int64(0); at < total; {
		news := s.beyond(at)
		n, err := s.readAt(at, buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			<-news
			continue
		}
		if !bytes.Equal(buf[:n], pattern(at, int64(n))) {
			t.Fatalf("wrong bytes from %d on", at)
		}
		at += int64(n)
		if before := at - at%13; !s.forget(before) { // a reader that is a little behind
			t.Fatalf("%d cannot be forgotten", before)
		}
	}
	writing.Wait()
	if first, last := s.bounds(); last != total || first > last {
		t.Errorf("it ends at %d, and begins at %d", last, first)
	}
}

func TestSpool_HoldsItsWriterUpAndLosesNothing(t *testing.T) {
	for name, folder := range map[string]string{"with a file": t.TempDir(), "without": "/no/such/folder"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := smallSpool(folder)
				wrote := make(chan struct{})
				go func() {
					defer close(wrote)
					s.Write(pattern(0, 1000))
				}()
				synctest.Wait()
				_, held := s.bounds()
				if limit := s.file + int64(s.memory); held < int64(s.memory) || held > limit {
					t.Fatalf("%d bytes are held of %d", held, limit)
				}
				for at := int64(0); at < 1000; {
					var b [30]byte
					n, err := s.readAt(at, b[:])
					if err != nil || !bytes.Equal(b[:n], pattern(at, int64(n))) {
						t.Fatalf("at %d: %v", at, err)
					}
					at += int64(n)
					s.forget(at)
					synctest.Wait()
				}
				<-wrote
			})
		})
	}
}

func TestSpool_WritesToADiskThatHasRoomAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := smallSpool(dir + "/later")
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			s.Write(pattern(0, 200))
		}()
		synctest.Wait()
		if err := os.Mkdir(dir+"/later", 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(spoolRetry + time.Second) // of the bubble's time
		<-wrote
		s.close()
	})
}

func TestSpool_SaysWhatItForgotAndThatItIsClosed(t *testing.T) {
	s := smallSpool(t.TempDir())
	s.Write(pattern(0, 100))
	if s.forget(101) {
		t.Error("what is not written is forgotten")
	}
	if !s.forget(40) || !s.forget(20) {
		t.Error("it forgets nothing")
	}
	if _, err := s.readAt(39, make([]byte, 1)); !errors.Is(err, errForgotten) {
		t.Errorf("got %v", err)
	}
	if n, err := s.readAt(40, make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	s.close()
	if _, err := s.Write([]byte("x")); !errors.Is(err, errSpoolOver) {
		t.Errorf("got %v", err)
	}
	if _, err := s.readAt(40, make([]byte, 1)); !errors.Is(err, errSpoolOver) {
		t.Errorf("got %v", err)
	}
}

func TestSpool_LeavesNoNameInItsFolder(t *testing.T) {
	dir := t.TempDir()
	s := smallSpool(dir)
	defer s.close()
	s.Write(pattern(0, 300))
	if s.disk == nil {
		t.Fatal("it has no file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("there are %v, %v", entries, err)
	}
}
