package archtest

// layer is a set of packages that may import the same.
type layer struct {
	name     string
	packages []string // folders; "internal/guest/..." is a folder and all below it
	may      []string // names of layers, its own included where its packages may import each other
}

// layers is the picture in ARCHITECTURE.md, from the bottom up. A package that is in none of them is a violation.
var layers = []layer{
	{"text", []string{"internal/text"}, nil},
	{"base", []string{"internal/fault", "internal/event", "internal/wire", "internal/socket", "internal/semaphore", "internal/ratelimit", "internal/pace", "internal/publicaddr"}, nil},
	{"archive", []string{"internal/archive"}, []string{"base"}},
	{"cron", []string{"internal/cron"}, []string{"base"}},
	{"git", []string{"internal/git"}, []string{"base", "text"}},
	{"hostname", []string{"internal/hostname"}, []string{"base"}},
	{"seal", []string{"internal/seal"}, []string{"base"}},
	{"server backup", []string{"internal/serverbackup"}, []string{"base", "text"}},
	{"repository", []string{"internal/repository"}, []string{"base"}},
	{"repository test", []string{"internal/repository/repositorytest"}, []string{"base", "repository"}},
	{"kopia", []string{"internal/kopia/..."}, []string{"base", "text", "repository", "kopia"}},
	{"link", []string{"internal/link"}, []string{"base"}},
	{"guest", []string{"internal/guest/..."}, []string{"base", "archive", "guest"}},
	{"domain", []string{"internal/sandbox", "internal/catalog", "internal/auth"}, []string{"base", "archive", "hostname", "domain"}},
	{"idle", []string{"internal/idle"}, []string{"base", "hostname", "domain"}},
	{"access", []string{"internal/access"}, []string{"base", "hostname", "link", "domain", "idle"}},
	{"volume", []string{"internal/volume"}, []string{"base", "text", "domain", "idle", "access"}},
	{"volume test", []string{"internal/volume/volumetest"}, []string{"base", "volume"}},
	{"feature", []string{"internal/exec", "internal/terminal", "internal/files", "internal/backup", "internal/ide", "internal/lastuse", "internal/lastview", "internal/services", "internal/tunnel", "internal/visibility"}, []string{"base", "archive", "hostname", "link", "domain", "idle", "access", "repository"}},
	{"snapshot", []string{"internal/snapshot"}, []string{"base", "archive", "hostname", "domain"}},
	{"update", []string{"internal/update"}, []string{"base", "domain", "idle", "access", "snapshot"}},
	{"update test", []string{"internal/update/updatetest"}, []string{"base", "update"}},
	{"schedule", []string{"internal/schedule"}, []string{"base", "cron", "archive", "domain", "feature", "text"}},
	{"template", []string{"internal/template"}, []string{"base", "cron", "git", "domain", "text"}},
	{"template test", []string{"internal/template/templatetest"}, []string{"base", "domain", "template"}},
	{"schedule test", []string{"internal/schedule/scheduletest"}, []string{"base", "domain", "schedule"}},
	{"snapshot test", []string{"internal/snapshot/snapshottest"}, []string{"base", "archive", "domain", "snapshot", "test"}},
	{"record", []string{"internal/metrics", "internal/logs", "internal/activity"}, []string{"base", "domain", "text"}},
	{"activity test", []string{"internal/activity/activitytest"}, []string{"base", "record"}},
	{"alert", []string{"internal/alert"}, []string{"base", "domain", "record", "text"}},
	{"send", []string{"internal/alert/..."}, []string{"base", "alert", "text", "send"}},
	{"gateway", []string{"internal/gateway"}, []string{"base", "domain", "text"}},
	{"tools", []string{"internal/tools", "internal/tools/..."}, []string{"base", "text", "domain", "idle", "access", "feature", "snapshot", "record", "tools"}},
	{"agent install", []string{"internal/acp/install"}, []string{"base", "text", "domain", "idle", "access", "feature"}},
	{"gateway test", []string{"internal/gateway/gatewaytest"}, []string{"base", "domain", "gateway"}},
	{"code run", []string{"internal/coderun"}, nil},
	{"chat", []string{"internal/chat"}, []string{"base", "domain", "text", "code run"}},
	{"trials", []string{"internal/trials"}, []string{"base", "hostname", "text", "domain", "snapshot", "chat"}},
	{"trials test", []string{"internal/trials/trialstest"}, []string{"base", "chat", "trials"}},
	{"chat loop", []string{"internal/chat/loop"}, []string{"base", "text", "agent", "agent driver", "tools", "chat"}},
	{"acp", []string{"internal/acp"}, []string{"base", "text"}},
	{"acp test", []string{"internal/acp/acptest", "internal/acp/acptest/agent"}, []string{"acp test"}},
	{"chat program", []string{"internal/chat/program"}, []string{"base", "text", "acp", "tools", "chat"}},
	{"chat test", []string{"internal/chat/chattest"}, []string{"base", "domain", "chat"}},
	{"agent", []string{"internal/agent"}, []string{"base", "text"}},
	{"agent driver", []string{"internal/agent/anthropic", "internal/agent/openai", "internal/agent/ollama", "internal/agent/scripted", "internal/agent/transport"}, []string{"base", "text", "agent", "agent driver"}},
	{"agent test", []string{"internal/agent/agenttest"}, []string{"base", "agent", "agent driver", "gateway", "gateway test"}},
	{"measure", []string{"internal/host", "internal/metrics/...", "internal/trace/..."}, []string{"base", "domain", "record"}},
	{"adapter", []string{"internal/btrfs", "internal/docker", "internal/firewall", "internal/sqlite"}, []string{"base", "archive", "hostname", "domain", "snapshot", "update", "schedule", "template", "chat", "trials", "gateway", "record", "alert", "repository", "volume", "feature"}},
	{"static", []string{"static"}, nil},
	{"bundle", []string{"static/bundle"}, []string{"static"}},
	{"views", []string{"views"}, nil},
	{"web", []string{"web"}, []string{"base", "hostname", "domain", "idle", "access", "feature", "snapshot", "update", "cron", "schedule", "template", "chat", "trials", "agent install", "gateway", "record", "alert", "repository", "volume", "static", "views"}},
	{"proxy", []string{"internal/proxy"}, []string{"base", "hostname", "domain", "idle", "access", "feature", "record", "static", "views"}},
	{"sshd", []string{"internal/sshd"}, []string{"base", "hostname", "link", "domain", "idle", "access", "feature"}},
	{"client", []string{"internal/client"}, []string{"base"}},
	{"test", []string{"internal/sandboxtest", "internal/archtest", "internal/benchtest"}, []string{"base", "archive", "hostname", "domain"}},
	{"access test", []string{"internal/access/accesstest"}, []string{"base", "hostname", "domain", "idle", "access"}},
	{"templates", []string{"templates/..."}, nil},
	{"socket proxy", []string{"internal/socketproxy"}, nil},
	{"guest command", []string{"cmd/guest"}, []string{"base", "guest"}},
	{"command", []string{"cmd/sandboxd"}, []string{"base", "hostname", "link", "domain", "idle", "access", "feature", "snapshot", "update", "schedule", "template", "git", "tools", "chat loop", "chat program", "chat", "trials", "agent install", "gateway", "agent", "agent driver", "record", "measure", "alert", "send", "adapter",
		"repository", "volume", "seal", "server backup", "kopia", "static", "views", "web", "proxy", "sshd", "client", "socket proxy", "templates"}},
}

// drivers tie us to a technology: each is imported by one package only, so that it can be replaced there. Two need a reason.
var drivers = map[string]string{
	"database/sql":                         "internal/sqlite",
	"modernc.org/sqlite":                   "internal/sqlite",
	"github.com/docker/docker":             "internal/docker",
	"github.com/containerd/errdefs":        "internal/docker",
	"github.com/moby/profiles":             "internal/docker",
	"github.com/opencontainers":            "internal/docker",
	"github.com/labstack/echo":             "web",
	"github.com/getkin/kin-openapi":        "web",
	"github.com/spf13":                     "cmd/sandboxd",
	"golang.org/x/term":                    "cmd/sandboxd",
	"golang.org/x/crypto":                  "internal/auth",
	"golang.org/x/crypto/ssh":              "internal/sshd internal/kopia/child", // a server of it, and a client of others'
	"golang.org/x/crypto/chacha20poly1305": "internal/seal",
	"filippo.io/age":                       "internal/serverbackup",
	"github.com/kopia/kopia":               "internal/kopia/child",
	"github.com/minio/minio-go":            "internal/kopia/child",
	"github.com/pkg/sftp":                  "internal/guest/sftp internal/kopia/child", // a server of it, and a client of others'
	"mvdan.cc/sh":                          "internal/tools/risk",
	"github.com/klauspost/compress":        "internal/files",
	"github.com/klauspost/compress/zstd":   "internal/files internal/sqlite internal/backup internal/serverbackup", // archives, backups, and chunks of log lines: packing them is part of how they are stored
	"github.com/robfig/cron":               "internal/cron",
	"github.com/anthropics":                "internal/agent/anthropic",
	"github.com/openai":                    "internal/agent/openai",
	"github.com/ollama/ollama":             "internal/agent/ollama",
	"github.com/aymanbagabas/go-udiff":     "internal/snapshot internal/tools", // differences of versions, and what an edit did
	"github.com/creack/pty":                "internal/guest/...",
	"github.com/evanw/esbuild":             "static/bundle",
	"github.com/coreos/go-iptables":        "internal/firewall",
	"github.com/prometheus/procfs":         "internal/host",
	"go.opentelemetry.io":                  "internal/trace/...",
	"google.golang.org/protobuf":           "internal/trace/...",
	"github.com/andybalholm/brotli":        "static/bundle",
	"github.com/traefik/paerser":           "tests",
	"github.com/chromedp":                  "tests",
	"github.com/compose-spec":              "tests",
	"github.com/rogpeppe/go-internal":      "tests",
	"github.com/google/go-cmp":             "tests",
	"golang.org/x/net/html":                "tests",
	"github.com/traefik/traefik":           "nobody",
	"github.com/stretchr/testify":          "nobody",
	"go.uber.org/mock":                     "nobody",
	"github.com/sirupsen/logrus":           "nobody",
	"github.com/pkg/errors":                "nobody",
	"io/ioutil":                            "nobody",
	"math/rand":                            "nobody",
	"github.com/google/cadvisor":           "internal/metrics/...",
	"github.com/modelcontextprotocol":      "internal/mcp",
	"github.com/prometheus/client_golang":  "internal/metrics/...",
	"github.com/wneessen/go-mail":          "internal/alert/mail",
	"github.com/standard-webhooks":         "internal/alert/webhook",
	"github.com/nicholas-fedor/shoutrrr":   "internal/alert/shoutrrr",
	"github.com/emersion/go-smtp":          "tests",
	"github.com/emersion/go-sasl":          "tests",
	"github.com/prometheus/common":         "tests",
	"github.com/prometheus/client_model":   "tests",
}

// shared are formats, protocols and extensions of the standard library, which say nothing about a technology.
var shared = []string{
	"github.com/a-h/templ",              // the views are of it, and web renders them
	"github.com/gorilla/websocket",      // a protocol
	"github.com/goccy/go-yaml",          // a format
	"github.com/docker/go-units",        // how sizes are written
	"github.com/distribution/reference", // how images are named
	"github.com/moby/patternmatcher",    // the format of .dockerignore
	"golang.org/x/net/http2",            // both ends of the link
	"golang.org/x/sync",
	"golang.org/x/sys",
	"golang.org/x/time",
}

// Limits of size, from STYLE.md.
const (
	maxLines      = 500
	maxFunction   = 60
	maxParameters = 6
	maxMethods    = 40 // of one type
)

// exception lets one place break one rule.
type exception struct {
	file   string // slash path from the root
	rule   string
	about  string // part of the violation's text
	reason string
}

// exceptions stay few. One that nothing needs any more is a violation itself.
var exceptions = []exception{
	{"web/body.go", "error text", "", "encoding/json has no type for its error about an unknown field, whose name we owe the client"},
	{"web/api_power.go", "row", "", "it waits for the sandbox that its caller has just changed by a handle"},
	{"web/api_sandboxes.go", "row", "", "the row is what Create has just given its owner"},
}
