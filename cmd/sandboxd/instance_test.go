package main

import (
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

func TestClaimInstance_IsForOneServerAtATime(t *testing.T) {
	const instance = "test-of-claims"
	release, err := claimInstance(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claimInstance(t.Context(), instance); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "Stop the old one for good") {
		t.Errorf("a second one: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = claimInstance(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
