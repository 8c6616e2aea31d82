package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// Config is everything that can be configured. Every field is a flag and a SANDBOXD_ variable of the same name;
// config_docs.go writes the README's table from the flags.
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
	Prebuild  []string
}

// envPrefix begins the variable of every flag: --log-level is SANDBOXD_LOG_LEVEL.
const envPrefix = "SANDBOXD_"

// adminPasswordEnv claims the first admin without the set-up link. It is no flag: a command line can be read by all.
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
	f.StringVar(&c.LogLevel, "log-level", "info", "least level that is logged: debug, info, warn or error")
	f.StringVar(&c.LogFormat, "log-format", "text", "how the log is written: text or json")
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
