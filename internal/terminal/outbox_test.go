package terminal

import "testing"

func TestOutbox_APingAfterTheEndDelaysNothing(t *testing.T) {
	o := newOutbox()
	o.answer()
	if m, end := o.take(nil); string(m) != string(ping) || end != nil {
		t.Errorf("before the end: %q, %v", m, end)
	}
	o.answer()
	o.finish(left)
	o.answer()
	if m, end := o.take(nil); m != nil || end == nil {
		t.Errorf("after the end: %q, %v", m, end)
	}
}
