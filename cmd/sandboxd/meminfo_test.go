package main

import (
	"errors"
	"slices"
	"testing"
)

const memText = "MemTotal:       16384 kB\nMemFree:  10 kB\nMemAvailable:    8192 kB\nHugePages_Total:       0\nSwapFree:              0 kB\nTorn: x kB\n"

func TestFigures_AreOfOneLook(t *testing.T) {
	looks := 0
	got, err := figuresOf(func() ([]byte, error) { looks++; return []byte(memText), nil }, "MemAvailable", "MemTotal", "SwapFree")
	if err != nil || looks != 1 || !slices.Equal(got, []int64{8192 << 10, 16384 << 10, 0}) {
		t.Errorf("%v, %v after %d looks", got, err, looks)
	}
}

func TestFigures_WhatCannotBeToldIsAnError(t *testing.T) {
	for _, key := range []string{"Mem", "Torn", ""} {
		if got, err := figuresOf(func() ([]byte, error) { return []byte(memText), nil }, "MemTotal", key); err == nil {
			t.Errorf("%q: %v", key, got)
		}
	}
	away := errors.New("no /proc")
	if _, err := figuresOf(func() ([]byte, error) { return nil, away }, "MemTotal"); !errors.Is(err, away) {
		t.Errorf("told %v", err)
	}
}

func TestMemInfo_IsTheHosts(t *testing.T) {
	now, err := memInfo("MemAvailable", "MemTotal")
	if err != nil || now[0] <= 0 || now[1] <= now[0] {
		t.Errorf("%v, %v", now, err)
	}
}
