package main

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/pflag"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// Config is everything that can be configured. Every field is a flag and a SANDBOXD_ variable of the same name;
// docs.go writes the table in docs/configuration.md from the flags.
type Config struct {
	Listen    string
	Data      string
	Domain    string
	PublicURL string
	Templates []string
	CAFile    string
	Subnet    string
	LogLevel  string
	LogFormat string

	PprofAddress string

	MetricsListen    string
	MetricsTokenFile string

	CAdvisor     string
	OTLPEndpoint string

	Prebuild []string

	FreezeAfter   string
	StopAfter     string
	Settle        time.Duration
	MemoryReserve string

	TrustedProxies []string

	SMTP                  string
	SMTPTLS               string
	SMTPUser              string
	SMTPPasswordFile      string
	SMTPFrom              string
	AlertPrivateAddresses bool
	ModelPrivateAddresses bool
	ActivityKeep          string
	BackupFolder          string
	BackupKeep            string
	BackupQuota           string
	SnapshotKeep          string
	SnapshotAutomatic     int
	SnapshotMost          int
	MemorySnapshots       bool
	TurnSteps             int
	TurnTokens            int64
	TurnDollars           float64
	TurnTime              time.Duration
}

// envPrefix begins the variable of every flag: --log-level is SANDBOXD_LOG_LEVEL.
const envPrefix = "SANDBOXD_"

// adminPasswordEnv claims the first admin without the setup link. It is no flag: a command line can be read by all.
const adminPasswordEnv = envPrefix + "ADMIN_PASSWORD"

// dataFlags adds what every command needs that looks at the data folder.
func (c *Config) dataFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Data, "data", defaultData(), "folder that holds the database, links and the guest")
}

// templateFlags adds what every command needs that reads templates and builds images.
func (c *Config) templateFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&c.Templates, "templates", nil, "folders with templates of your own, one sub-folder each (repeat or separate by commas)")
	f.StringVar(&c.CAFile, "ca-file", "", "PEM file of extra CA certificates for builds and sandboxes, beside those found on the host")
}

// serveFlags adds what only the server needs.
func (c *Config) serveFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Listen, "listen", "127.0.0.1:8080", "address to serve on")
	f.StringVar(&c.Domain, "domain", "localhost", "domain of the dashboard; sandboxes live one level below it")
	f.StringVar(&c.PublicURL, "public-url", "", "the dashboard's address as browsers see it, when a proxy stands in front (https://box.example.com); it replaces --domain")
	f.StringVar(&c.Subnet, "subnet", "", "IPv4 network for the sandboxes, such as 10.213.0.0/16 (default: the first free one)")
	f.StringSliceVar(&c.Prebuild, "prebuild", []string{"base"}, "templates whose images are built at start rather than on first use")
	f.StringVar(&c.FreezeAfter, "freeze-after", "15m", `how long a sandbox must be unused before it is frozen: a duration such as "15m", or "never"`)
	f.StringVar(&c.StopAfter, "stop-after", "4h", `how long a sandbox must be unused before it is put to sleep, its processes ended: a duration such as "4h" or "3d", or "never"`)
	f.DurationVar(&c.Settle, "settle", time.Minute, "how long after sandboxd or the engine starts nothing is put to rest")
	f.StringVar(&c.MemoryReserve, "memory-reserve", "5%", `memory of this host that is kept free by putting unused sandboxes to rest early: "5%", "512MiB", or "0" for none`)
	f.StringSliceVar(&c.TrustedProxies, "trusted-proxies", nil, "networks of proxies in front whose X-Forwarded-For is believed, such as 127.0.0.1/32")
	f.StringVar(&c.LogLevel, "log-level", "info", "least level that is logged: debug, info, warn or error")
	f.StringVar(&c.PprofAddress, "pprof-address", "", "loopback address at which profiles of sandboxd are read below /debug/pprof/, such as 127.0.0.1:6060 (default: nowhere)")
	f.StringVar(&c.CAdvisor, "cadvisor", "", "address of a cAdvisor on the engine's host from which figures of sandboxes are read, such as http://127.0.0.1:8081 (default: the cgroup files, or the engine)")
	f.StringVar(&c.MetricsListen, "metrics-listen", "", "address at which Prometheus reads figures below /metrics, such as 127.0.0.1:9464 (default: nowhere)")
	f.StringVar(&c.MetricsTokenFile, "metrics-token-file", "", "file with the bearer token that --metrics-listen asks for; needed unless that is a loopback address")
	f.StringVar(&c.OTLPEndpoint, "otlp-endpoint", "", "collector that gets traces of requests to sandboxes over OTLP/HTTP, such as http://127.0.0.1:4318 (default: none)")
	c.alertFlags(f)
	c.modelFlags(f)
	f.StringVar(&c.ActivityKeep, "activity-keep", "180d", `how long is kept who did what, at most 500,000 entries: a duration such as "48h" or "180d"`)
	c.backupFlags(f)
	c.snapshotFlags(f)
	c.turnFlags(f)
	f.StringVar(&c.LogFormat, "log-format", "text", "how the log is written: text or json")
	f.String("traefik-listen", "", "")
	_ = f.MarkDeprecated("traefik-listen", "Traefik leads everything to --listen") // fails for a flag that is not there
}

// fromEnv sets every flag that the command line left alone from its variable.
func fromEnv(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var first error
	f.VisitAll(func(flag *pflag.Flag) {
		value, ok := lookup(envName(flag.Name))
		if !ok || flag.Changed || first != nil {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			first = fault.Wrap(err, fault.Invalid, "%s is %q, which is not a value for --%s.", envName(flag.Name), value, flag.Name)
		}
	})
	return first
}

func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// defaultData is /var/lib/sandboxd for root, else a folder of the user's.
func defaultData() string {
	if os.Geteuid() == 0 {
		return "/var/lib/sandboxd"
	}
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "sandboxd")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "sandboxd")
	}
	return filepath.Join(home, ".local", "share", "sandboxd")
}

// hosts gives the hosts that c serves.
func (c *Config) hosts() (hostname.Hosts, error) {
	if c.PublicURL != "" {
		return hostname.New(c.PublicURL)
	}
	return hostname.Local(c.Domain, c.Listen)
}

// rest gives the server's times of rest.
func (c *Config) rest() (r catalog.Rest, err error) {
	if r.FreezeAfter, err = after("freeze-after", c.FreezeAfter); err != nil {
		return r, err
	}
	r.StopAfter, err = after("stop-after", c.StopAfter)
	return r, err
}

// after reads a time of rest that a flag gives. There is nothing wider that it could leave open.
func after(flag, text string) (catalog.After, error) {
	a, err := catalog.ParseAfter(flag, text)
	if err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "--%s: %s", flag, fault.Message(err))
	}
	if a == 0 {
		return 0, fault.Field(flag, "--%s needs a duration such as \"15m\", or \"never\".", flag)
	}
	return a, nil
}

// check refuses what no server can go by, before anything is touched.
func (c *Config) check() error {
	if c.Settle < 0 {
		return fault.Field("settle", "--settle is %s; it must be a duration such as \"1m\", or \"0s\" for none.", c.Settle)
	}
	if _, err := c.activityKeep(); err != nil {
		return err
	}
	if _, err := c.rest(); err != nil {
		return err
	}
	if _, _, err := c.backupBounds(); err != nil {
		return err
	}
	if _, err := c.snapshotKeep(); err != nil {
		return err
	}
	if err := c.checkTurns(); err != nil {
		return err
	}
	if _, err := c.reserve(math.MaxInt64); err != nil {
		return err
	}
	if err := c.checkPprof(); err != nil {
		return err
	}
	if err := c.checkMetrics(); err != nil {
		return err
	}
	if _, err := c.cadvisor(""); err != nil {
		return err
	}
	if _, err := c.collector(); err != nil {
		return err
	}
	if _, err := c.mail(nil); err != nil {
		return err
	}
	_, err := c.trusted()
	return err
}

// reserve gives the memory to keep free on a host that has total bytes, in bytes.
func (c *Config) reserve(total int64) (int64, error) {
	text := strings.TrimSpace(c.MemoryReserve)
	bad := fault.Field("memory-reserve", "--memory-reserve is %q; it must be a share such as \"5%%\" or a size such as \"512MiB\".", text)
	if share, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseFloat(share, 64)
		if err != nil || math.IsNaN(n) || n < 0 || n > 90 {
			return 0, bad
		}
		return int64(float64(total) * n / 100), nil
	}
	n, err := units.RAMInBytes(text)
	if err != nil || n < 0 {
		return 0, bad
	}
	return n, nil
}

// proxied reports whether a proxy on this host serves sandboxd to the world.
func (c *Config) proxied() bool {
	trusted, err := c.trusted()
	return err == nil && c.PublicURL != "" && slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Addr().IsLoopback() })
}

// trusted gives the networks whose word on who asks is believed. A single address is a network of its own.
func (c *Config) trusted() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range c.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if a, addrErr := netip.ParseAddr(text); addrErr == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, fault.Field("trusted-proxies", "--trusted-proxies has %q, which is neither an address nor a network such as 127.0.0.1/32.", text)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
