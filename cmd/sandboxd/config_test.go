package main

import (
	"io"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

// TestServe_AValueThatIsNoneIsRefusedByItsFlag starts servers that would take a port otherwise.
func TestServe_AValueThatIsNoneIsRefusedByItsFlag(t *testing.T) {
	for arg, says := range map[string]string{
		"--freeze-after=banana":     `--freeze-after: "banana" is no idle time.`,
		"--freeze-after=":           `--freeze-after needs a duration`,
		"--stop-after=0s":           `--stop-after: "0s" is no idle time.`,
		"--stop-after=-4h":          `--stop-after: "-4h" is no idle time.`,
		"--settle=-1s":              `--settle is -1s; it must be a duration such as "1m"`,
		"--settle=soon":             `"--settle"`,
		"--memory-reserve=-5%":      `--memory-reserve is "-5%"`,
		"--memory-reserve=-1MiB":    `--memory-reserve is "-1MiB"`,
		"--metrics-listen=9464":     `--metrics-listen is "9464"`,
		"--metrics-listen=:9464":    `Name a file with a token as --metrics-token-file`,
		"--otlp-endpoint=a:4317":    `--otlp-endpoint: It must be`,
		"--cadvisor=127.0.0.1:8081": `--cadvisor must be the address of a cAdvisor`,
		"--smtp=mail.example.com":   `--smtp is "mail.example.com"; it must be a mail server with its port`,
		"--smtp=m.example.com:587":  `--smtp-from is ""`,
		"--smtp-user=ada":           `--smtp-user needs --smtp`,
		"--snapshot-keep=never":     `--snapshot-keep is "never"`,
		"--snapshot-most=0":         `--snapshot-most is 0; it must be between 1 and`,
		"--snapshot-automatic=-1":   `--snapshot-automatic is -1; it must be between 1 and`,
		"--turn-steps=-1":           `--turn-steps is -1; it must be a number of steps`,
		"--turn-tokens=-1":          `--turn-tokens is -1`,
		"--turn-dollars=NaN":        `--turn-dollars is NaN; it must be between 0 for no limit and`,
		"--turn-time=-1h":           `--turn-time is -1h0m0s`,
		"--trusted-proxies=banana":  `--trusted-proxies has "banana"`,
	} {
		root := newRootCmd()
		root.SetArgs([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:no-port", arg})
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		err := root.ExecuteContext(t.Context())
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), says) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestConfig_ADefaultIsNoMistake(t *testing.T) {
	c := &Config{}
	newServe := newServeCmd(c)
	if err := newServe.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
	c.Settle, c.FreezeAfter, c.StopAfter, c.MemoryReserve = 0, "never", "never", "0"
	if err := c.check(); err != nil {
		t.Error(err)
	}
}
