package event

import (
	"testing"
)

func TestPublish_EverySubscriberGetsEverythingInOrder(t *testing.T) {
	b := NewBus[int](3)
	one, two := b.Subscribe(), b.Subscribe()
	defer one.Close()
	defer two.Close()
	for i := range 3 {
		b.Publish(i)
	}
	for i := range 3 {
		if a, c := <-one.C, <-two.C; *a != i || *c != i {
			t.Errorf("got %d and %d, want %d", a, c, i)
		}
	}
}

func TestPublish_ASlowSubscriberIsDroppedAndToldSo(t *testing.T) {
	b := NewBus[int](1)
	slow, quick := b.Subscribe(), b.Subscribe()
	defer quick.Close()
	b.Publish(1)
	<-quick.C
	b.Publish(2)
	if got := <-slow.C; *got != 1 {
		t.Errorf("got %d, want what fitted the buffer", *got)
	}
	if _, open := <-slow.C; open || !slow.Dropped() {
		t.Error("the slow subscriber is not ended")
	}
	if got := <-quick.C; *got != 2 || quick.Dropped() {
		t.Error("the quick subscriber suffers for the slow one")
	}
}

func TestClose_MayBeRepeatedAndIsNoDrop(t *testing.T) {
	b := NewBus[int](1)
	s := b.Subscribe()
	s.Close()
	s.Close()
	b.Publish(1)
	if _, open := <-s.C; open || s.Dropped() {
		t.Error("a closed subscription still receives, or counts as dropped")
	}
}
