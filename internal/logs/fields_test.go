package logs

import (
	"fmt"
	"strings"
	"testing"
)

func TestFields_TakesJSONApart(t *testing.T) {
	for line, want := range map[string]string{
		`{"level":"warn","msg":"slow","took":1.50,"ok":true,"x":null}`: `slow [{level warn} {took 1.50} {ok true} {x null}]`,
		` {"a": {"b": [1, 2]}, "Message": "m" } `:                      `m [{a {"b":[1,2]}}]`,
		`{"error":"e","event":"started","text":""}`:                    `started [{error e} {text }]`,
		`{"msg":"","n":1}`: ` [{msg } {n 1}]`,
		`{}`:               ` []`,
		`{"msg":"x"`:       "not",
		`{"msg":"x"} {}`:   "not",
		`["msg"]`:          "not",
		`{nonsense}`:       "not",
		`plain`:            "not",
		``:                 "not",
	} {
		message, fields, ok := Fields(line)
		got := "not"
		if ok {
			got = fmt.Sprint(message, " ", fields)
		}
		if got != want {
			t.Errorf("%s gives %s, want %s", line, got, want)
		}
	}
}

func FuzzFields(f *testing.F) {
	f.Add(`{"msg":"\u0000","a":[{}],"a":1e400}`)
	f.Add(strings.Repeat(`{"a":`, 100))
	f.Fuzz(func(t *testing.T, line string) {
		if _, fields, _ := Fields(line); len(fields) > maxFields {
			t.Errorf("%d fields", len(fields))
		}
	})
}
