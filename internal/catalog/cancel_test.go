package catalog

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
)

// cancelled has the rig build and cancels one template once the engine is at work; it gives the records and what Ensure of each said.
func cancelled(t *testing.T, cancel string, build ...string) (records map[string]Record, said map[string]error) {
	t.Helper()
	records, said = map[string]Record{}, map[string]error{}
	bubble(t, func(r *rig) {
		k := &keeper{}
		r.records = k
		ended := make(chan struct{})
		for _, name := range build {
			go func() {
				_, err := r.ensure(name)
				k.mu.Lock()
				said[name] = err
				k.mu.Unlock()
				ended <- struct{}{}
			}()
			synctest.Wait()
		}
		time.Sleep(buildTime / 4)
		synctest.Wait()
		if err := r.Cancel(cancel, "ann"); err != nil {
			t.Errorf("it gives %v", err)
		}
		for range build {
			<-ended
		}
		synctest.Wait()
		if err := r.Cancel(cancel, "ann"); !fault.Is(err, fault.Conflict) {
			t.Errorf("once more gives %v", err)
		}
		if s := r.state(cancel, ImageFailed); s.Problem != "The build was cancelled by ann." || !s.Cancelled {
			t.Errorf("status is %+v", s)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, one := range k.list {
			records[one.Template] = one
		}
	})
	return records, said
}

func TestCancel_EndsWhatIsUnderWayWithAllThatItHadToBuildFirst(t *testing.T) {
	records, said := cancelled(t, "top", "top")
	if err := said["top"]; !fault.Is(err, fault.Unavailable) || fault.Message(err) != "The build was cancelled by ann." {
		t.Errorf("it is told %v", err)
	}
	for _, name := range []string{"top", "base"} {
		if one := records[name]; !one.Cancelled || one.CutOff || one.Problem != "The build was cancelled by ann." || one.Ended.Sub(one.Began) > buildTime/2 {
			t.Errorf("record of %s is %+v", name, one)
		}
	}
}

func TestCancel_TakesOneOutOfTheLine(t *testing.T) {
	records, said := cancelled(t, "side", "top", "side")
	if said["top"] != nil || said["side"] == nil || records["top"].Cancelled || records["base"].Cancelled {
		t.Errorf("said are %v, records %+v", said, records)
	}
	if !records["side"].Cancelled {
		t.Errorf("record is %+v", records["side"])
	}
}

func TestCancel_EndsWhatWaitsForTheImage(t *testing.T) {
	records, said := cancelled(t, "base", "base", "top")
	if err := said["top"]; err == nil || !strings.Contains(fault.Message(err), "cancelled by ann") || !records["top"].Cancelled || !records["base"].Cancelled {
		t.Errorf("said are %v, records %+v", said, records)
	}
}

func TestCancel_TellsThatItWasWanted(t *testing.T) {
	bubble(t, func(r *rig) {
		changes := r.Subscribe()
		defer changes.Close()
		ctx, cancel := context.WithCancel(r.t.Context())
		defer cancel()
		go func() { _, _ = r.Ensure(ctx, r.template("base"), nil) }() // what comes of it is told by changes
		synctest.Wait()
		if err := r.Cancel("base", "ann"); err != nil {
			t.Fatal(err)
		}
		for e := range changes.C {
			if e.Status.State == ImageFailed {
				if !e.Status.Cancelled {
					t.Errorf("told is %+v", e.Status)
				}
				return
			}
		}
	})
}
