package compose

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
)

// load reads compose.yaml as Docker Compose does, from a folder like this one with an .env made from example.env and more.
func load(t *testing.T, more map[string]string) (*types.Project, error) {
	t.Helper()
	env, err := dotenv.Read("example.env")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "compose")
	var file strings.Builder
	for name, value := range env {
		if other, there := more[name]; there {
			value = other
		}
		file.WriteString(name + "=" + value + "\n")
	}
	for name, value := range more {
		if _, there := env[name]; !there {
			file.WriteString(name + "=" + value + "\n")
		}
	}
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".env": file.String(), "compose.yaml": string(text)} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options, err := cli.NewProjectOptions([]string{filepath.Join(folder, "compose.yaml")}, cli.WithEnvFiles(filepath.Join(folder, ".env")), cli.WithDotEnv, cli.WithDefaultProfiles())
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func mustLoad(t *testing.T, more map[string]string) *types.Project {
	t.Helper()
	project, err := load(t, more)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// withFigures is an .env that runs cAdvisor, too.
var withFigures = map[string]string{"COMPOSE_PROFILES": "metrics", "CADVISOR_IMAGE": "example.com/cadvisor"}

func TestCompose_RunsCAdvisorOnlyWhenAsked(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want []string
	}{
		{nil, []string{"sandboxd", "socket-proxy", "traefik"}},
		{withFigures, []string{"cadvisor", "sandboxd", "socket-proxy", "traefik"}},
	} {
		names := mustLoad(t, c.env).ServiceNames()
		slices.Sort(names)
		if diff := cmp.Diff(c.want, names); diff != "" {
			t.Error(diff)
		}
	}
}

// The network of the host is shared, so what a service listens on is what it is told to; only Traefik is told to listen to the world.
func TestCompose_OnlyTraefikIsReachedFromOutside(t *testing.T) {
	project := mustLoad(t, withFigures)
	for name, service := range project.Services {
		if len(service.Ports) > 0 || len(service.Networks) > 1 {
			t.Errorf("%s publishes %v on %v", name, service.Ports, service.Networks)
		}
		want := "host"
		if name == "socket-proxy" {
			want = "none"
		}
		if service.NetworkMode != want {
			t.Errorf("%s has the network %q, want %q", name, service.NetworkMode, want)
		}
	}
	if at := project.Services["sandboxd"].Environment["SANDBOXD_LISTEN"]; at == nil || !strings.HasPrefix(*at, "127.0.0.1:") {
		t.Errorf("sandboxd listens on %v", at)
	}
	if !slices.Contains(project.Services["cadvisor"].Command, "--listen_ip=127.0.0.1") {
		t.Errorf("cadvisor runs %q", project.Services["cadvisor"].Command)
	}
	text, err := os.ReadFile("../traefik/traefik.yaml")
	if err != nil {
		t.Fatal(err)
	}
	addresses := regexp.MustCompile(`address: .*`).FindAllString(string(text), -1)
	if diff := cmp.Diff([]string{`address: ":80"`, `address: ":443"`}, addresses); diff != "" {
		t.Errorf("Traefik's entry points:\n%s", diff)
	}
	if regexp.MustCompile(`(?m)^(api|ping|metrics):|insecure|trustedIPs`).Match(text) {
		t.Error("traefik.yaml opens more than it must")
	}
}

func TestCompose_TheEngineIsGivenToTwoServicesAlone(t *testing.T) {
	const socket = "/var/run/docker.sock"
	for name, service := range mustLoad(t, withFigures).Services {
		has := false
		for _, v := range service.Volumes {
			if v.Source == socket {
				has = true
			} else if v.Type == types.VolumeTypeBind && slices.Contains([]string{"/", "/run", "/var", "/var/run"}, path.Clean(v.Source)) {
				t.Errorf("%s mounts %s, which has the engine's socket in it", name, v.Source)
			}
		}
		if want := name == "sandboxd" || name == "socket-proxy"; has != want {
			t.Errorf("%s has the engine's socket: %v, want %v", name, has, want)
		}
	}
}

// The kernel leads a path in a mount of a sandbox to the host's folder, not to sandboxd's view of it.
func TestCompose_TheDataFolderHasOnePathInsideAndOut(t *testing.T) {
	for _, folder := range []string{"/var/lib/sandboxd", "/srv/boxes"} {
		service := mustLoad(t, map[string]string{"DATA": folder}).Services["sandboxd"]
		if at := service.Environment["SANDBOXD_DATA"]; at == nil || *at != folder {
			t.Errorf("sandboxd keeps its data in %v, want %s", at, folder)
		}
		if !slices.ContainsFunc(service.Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Source == folder && v.Target == folder && !v.ReadOnly
		}) {
			t.Errorf("%s is not mounted at its own path: %v", folder, service.Volumes)
		}
	}
}

func TestCompose_EveryServiceIsConfined(t *testing.T) {
	allowed := map[string][]string{
		"traefik":  {"NET_BIND_SERVICE", "DAC_OVERRIDE"},
		"sandboxd": {"CHOWN", "DAC_OVERRIDE", "FOWNER", "NET_ADMIN", "NET_RAW"},
	}
	for name, service := range mustLoad(t, withFigures).Services {
		if !service.ReadOnly || service.Privileged || !slices.Contains(service.SecurityOpt, "no-new-privileges:true") || !slices.Equal(service.CapDrop, []string{"ALL"}) {
			t.Errorf("%s is not confined: %+v", name, service)
		}
		if diff := cmp.Diff(allowed[name], service.CapAdd); diff != "" {
			t.Errorf("capabilities of %s:\n%s", name, diff)
		}
		if service.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s restarts %q", name, service.Restart)
		}
	}
}

// The image of Traefik is the version that the tests run.
func TestCompose_ImagesArePinned(t *testing.T) {
	module, err := os.ReadFile("../internal/setup/traefik/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name, service := range mustLoad(t, withFigures).Services {
		_, tag, _ := strings.Cut(path.Base(service.Image), ":")
		switch {
		case service.Build != nil && service.Image == "sandboxd:local":
		case !regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(tag):
			t.Errorf("%s runs %q", name, service.Image)
		case name == "traefik" && !strings.Contains(string(module), "github.com/traefik/traefik/v3 "+tag+" "):
			t.Errorf("compose.yaml has Traefik %s, and the tests another", tag)
		}
	}
}

func TestCompose_WhatItMountsIsThere(t *testing.T) {
	project := mustLoad(t, withFigures)
	for name, service := range project.Services {
		for _, v := range service.Volumes {
			inside, err := filepath.Rel(filepath.Dir(project.WorkingDir), v.Source)
			if v.Type != types.VolumeTypeBind || err != nil || strings.HasPrefix(inside, "..") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", inside)); err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			}
		}
	}
	build := project.Services["sandboxd"].Build
	if build.Context != filepath.Dir(project.WorkingDir) || build.Dockerfile != "compose/Dockerfile" {
		t.Errorf("sandboxd is built from %s in %s", build.Dockerfile, build.Context)
	}
	if script := project.Services["traefik"].Entrypoint[1]; !strings.HasSuffix(script, "/traefik/start.sh") {
		t.Errorf("Traefik is started by %q", script)
	}
}

func TestCompose_OneFileConfiguresIt(t *testing.T) {
	env, err := dotenv.Read("example.env")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{
		"CF_DNS_API_TOKEN": true, // an example of what Traefik gets by env_file
		"COMPOSE_PROFILES": true, // Compose's own
	}
	for _, found := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(string(text), -1) {
		asked[found[1]] = true
		if _, there := env[found[1]]; !there && !strings.HasPrefix(found[1], "SANDBOXD_") {
			t.Errorf("example.env does not have %s", found[1])
		}
	}
	for name := range env {
		if !asked[name] {
			t.Errorf("nothing asks for %s of example.env", name)
		}
	}
	if _, err := load(t, map[string]string{"DOMAIN": ""}); err == nil {
		t.Error("it loads without a domain")
	}
}

func TestCompose_SecretsReachOnlyThoseWhoNeedThem(t *testing.T) {
	more := maps.Clone(withFigures)
	more["SANDBOXD_ADMIN_PASSWORD"], more["CF_DNS_API_TOKEN"] = "hunter2", "token7"
	project := mustLoad(t, more)
	for name, service := range project.Services {
		for key, value := range service.Environment {
			switch {
			case value == nil:
			case *value == "hunter2" && name != "sandboxd", *value == "token7" && name != "traefik":
				t.Errorf("%s gets %s", name, key)
			}
		}
	}
	if got := project.Services["traefik"].Environment["CF_DNS_API_TOKEN"]; got == nil || *got != "token7" {
		t.Errorf("Traefik gets the DNS provider's token %v", got)
	}
}

func TestCompose_CertificatesComeFromFilesOrByACME(t *testing.T) {
	given := mustLoad(t, map[string]string{"CERT_FILE": "full.pem", "KEY_FILE": "key.pem", "CERT_DIR": "/etc/tls"}).Services["traefik"]
	for name, want := range map[string]string{"CERT_FILE": "/certs/full.pem", "KEY_FILE": "/certs/key.pem"} {
		if got := given.Environment[name]; got == nil || *got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
	if !slices.ContainsFunc(given.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Source == "/etc/tls" && v.Target == "/certs" && v.ReadOnly
	}) {
		t.Errorf("the certificates are not mounted: %v", given.Volumes)
	}
	acme := mustLoad(t, map[string]string{"DNS_PROVIDER": "hetzner"}).Services["traefik"]
	for name, want := range map[string]string{"CERT_FILE": "", "DNS_PROVIDER": "hetzner", "ACME_EMAIL": "you@example.com", "DOMAIN": "box.example.com"} {
		if got := acme.Environment[name]; got == nil || *got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
}

// What is made for sandboxd outside the data folder has to be mounted where sandboxd looks for it.
func TestCompose_TemplatesAndCertificatesOfOnesOwnAreSeen(t *testing.T) {
	project := mustLoad(t, nil)
	beside := func(name string) string { return filepath.Join(project.WorkingDir, name) }
	own := mustLoad(t, map[string]string{"TEMPLATES_DIR": "/srv/templates", "CA_DIR": "/srv/ca"})
	for at, sources := range map[string][2]string{
		"/etc/sandboxd/templates":          {beside("templates"), "/srv/templates"},
		"/usr/local/share/ca-certificates": {beside("ca"), "/srv/ca"},
	} {
		for i, service := range []types.ServiceConfig{project.Services["sandboxd"], own.Services["sandboxd"]} {
			if !slices.ContainsFunc(service.Volumes, func(v types.ServiceVolumeConfig) bool {
				return v.Source == sources[i] && v.Target == at && v.ReadOnly
			}) {
				t.Errorf("%s is not mounted at %s: %v", sources[i], at, service.Volumes)
			}
		}
	}
	if !slices.Contains(catalog.HostCA().Local, "/usr/local/share/ca-certificates") {
		t.Errorf("sandboxd looks for certificates in %v", catalog.HostCA().Local)
	}
	if got := project.Services["sandboxd"].Environment["SANDBOXD_TEMPLATES"]; got == nil || *got != "/etc/sandboxd/templates" {
		t.Errorf("sandboxd looks for templates in %v", got)
	}
}

// The table in docs/configuration.md has a variable for every flag, and a check of its own that it is complete. What cannot be set,
// that page says.
func TestCompose_EveryFlagCanBeSet(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile("\\| `--([a-z-]+)` \\| `(SANDBOXD_[A-Z_]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(flags) < 15 {
		t.Fatalf("docs/configuration.md has %d flags", len(flags))
	}
	more := map[string]string{"SANDBOXD_ADMIN_PASSWORD": "7"}
	for _, f := range flags {
		more[f[2]] = "7"
	}
	_, said, _ := strings.Cut(string(page), "except those that compose.yaml sets:")
	said, _, _ = strings.Cut(said, "\n## ")
	service := mustLoad(t, more).Services["sandboxd"]
	for _, f := range flags {
		got := service.Environment[f[2]]
		if fixed := strings.Contains(said, "`--"+f[1]+"`"); fixed == (got != nil && *got == "7") {
			t.Errorf("%s reaches sandboxd as %v, but docs/configuration.md says that compose.yaml sets it: %v", f[2], got, fixed)
		}
	}
	if got := service.Environment["SANDBOXD_ADMIN_PASSWORD"]; got == nil || *got != "7" {
		t.Error("the first admin's password does not reach sandboxd")
	}
}
