package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memInfo gives figures of /proc/meminfo, in bytes and in the order of the keys, all of one moment.
func memInfo(keys ...string) ([]int64, error) {
	return figuresOf(func() ([]byte, error) { return os.ReadFile("/proc/meminfo") }, keys...)
}

// memFigure is memInfo for one figure.
func memFigure(key string) (int64, error) {
	now, err := memInfo(key)
	if err != nil {
		return 0, err
	}
	return now[0], nil
}

// figuresOf is memInfo of what read gives, which it asks once: the kernel counts all of it anew for every reader.
func figuresOf(read func() ([]byte, error), keys ...string) ([]int64, error) {
	text, err := read()
	if err != nil {
		return nil, err
	}
	given := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if fields := strings.Fields(rest); len(fields) > 0 {
			given[name] = fields[0]
		}
	}
	figures := make([]int64, len(keys))
	for i, key := range keys {
		figure, ok := given[key]
		if !ok {
			return nil, fmt.Errorf("no %s in /proc/meminfo", key)
		}
		kib, err := strconv.ParseInt(figure, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read %s of /proc/meminfo: %w", key, err)
		}
		figures[i] = kib << 10
	}
	return figures, nil
}
