package wire

import (
	"time"

	"sandboxd/internal/text"
)

// Bounds of Setup and Hello.
const (
	MaxServices = 64
	maxEnv      = 1024
	maxEnvName  = 256
	maxEnvValue = 128 << 10 // Linux takes no longer string
	maxArgs     = 4096
	maxArg      = 128 << 10
	maxPath     = 4096
	maxName     = 64
	maxGrace    = time.Minute
	minInterval = time.Second // between two looks at a service
)

// Setup is the first thing that sandboxd says on a connection: what the sandbox is and what shall run in it. A guest
// that is told the same again changes nothing.
type Setup struct {
	Protocol  int               `json:"protocol"` // filled in by link
	Name      string            `json:"name"`
	Env       map[string]string `json:"env,omitempty"` // for everything that the guest starts
	Services  []Service         `json:"services,omitempty"`
	StopGrace time.Duration     `json:"stop_grace,omitempty"` // nanoseconds; 0 means the constant StopGrace
	// Revision grows with every change of what one sandboxd says of the sandbox. On one connection a smaller one is out of date.
	Revision int64 `json:"revision,omitempty"`
	// IDE says whether VS Code is offered. A guest that is older than this offers none.
	IDE bool `json:"ide,omitempty"`
	// MachineID replaces the one that the image has, 32 hex digits, so that clones have another. A guest that is older than this leaves it.
	MachineID string `json:"machine_id,omitempty"`
	// Models says whether the sandbox is offered models: at ModelsPort, with presets that lead programs there. A guest that is older than
	// this offers none.
	Models bool `json:"models,omitempty"`
}

// Service is a program that the guest starts and keeps running.
type Service struct {
	Name      string            `json:"name"` // DNS label
	Command   []string          `json:"command"`
	Port      int               `json:"port,omitempty"` // 0 when it listens on none
	Cwd       string            `json:"cwd,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Autostart bool              `json:"autostart,omitempty"`
	Health    *Health           `json:"health,omitempty"` // nil when nothing but its end tells whether it works
}

// Health is how the guest finds out whether a service works: by its port. A guest that is older than this does not.
type Health struct {
	Path     string        `json:"path,omitempty"`     // to GET; "" to be content with a connection
	Interval time.Duration `json:"interval,omitempty"` // nanoseconds; 0 means the guest's own
}

// Check says whether s is within its bounds.
func (s *Setup) Check() error {
	if len(s.Services) > MaxServices {
		return badField("services: too many")
	}
	if s.StopGrace < 0 || s.StopGrace > maxGrace {
		return badField("stop_grace")
	}
	if err := checkText("name", s.Name, maxName); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range s.Services {
		if err := s.Services[i].Check(); err != nil {
			return err
		}
		if seen[s.Services[i].Name] {
			return badField("services: a name is there twice")
		}
		seen[s.Services[i].Name] = true
	}
	return checkEnv(s.Env)
}

// Check says whether s is within its bounds.
func (s *Service) Check() error {
	if err := checkLabel("service name", s.Name, maxName); err != nil {
		return err
	}
	if err := checkCommand(s.Command); err != nil {
		return err
	}
	if s.Port < 0 || s.Port > 65535 {
		return badField("service port")
	}
	if err := checkText("cwd", s.Cwd, maxPath); err != nil {
		return err
	}
	if h := s.Health; h != nil {
		if h.Interval < 0 || h.Interval > 0 && h.Interval < minInterval {
			return badField("health interval")
		}
		if err := checkText("health path", h.Path, maxPath); err != nil {
			return err
		}
	}
	return checkEnv(s.Env)
}

// Hello is what a guest says of itself in answer to Setup.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	User     string `json:"user"`  // who commands and terminals run as by default
	Home     string `json:"home"`  // that user's home
	Shell    string `json:"shell"` // absolute path of that user's shell, or "" when the image has none
	HasTTYD  bool   `json:"has_ttyd"`
	HasTmux  bool   `json:"has_tmux"`
	Models   bool   `json:"models,omitempty"` // it knows PathModels
	// Kept says that it serves kept processes. A guest that is older than this does not.
	Kept bool `json:"kept,omitempty"`
}

// Check says whether h is within its bounds and cleans its texts. It does not judge Protocol.
func (h *Hello) Check() error {
	for what, s := range map[string]*string{"version": &h.Version, "user": &h.User, "home": &h.Home, "shell": &h.Shell} {
		if err := checkText(what, *s, maxPath); err != nil {
			return err
		}
		*s = text.OneLine(*s, maxPath)
	}
	return nil
}

func checkCommand(command []string) error {
	if len(command) == 0 || command[0] == "" {
		return badField("command: it is empty")
	}
	if len(command) > maxArgs {
		return badField("command: too many arguments")
	}
	for _, a := range command {
		if err := checkText("command: an argument is too long or holds a zero byte", a, maxArg-1); err != nil {
			return err
		}
	}
	return nil
}

func checkEnv(env map[string]string) error {
	if len(env) > maxEnv {
		return badField("env: too many variables")
	}
	for k, v := range env {
		if !envName(k) {
			return badField("env: a name is empty, too long or holds '=' or a zero byte")
		}
		if err := checkText("env: a value is too long or holds a zero byte", v, maxEnvValue-maxEnvName-2); err != nil {
			return err
		}
	}
	return nil
}

func envName(k string) bool {
	if k == "" || len(k) > maxEnvName {
		return false
	}
	for i := range len(k) {
		if k[i] == 0 || k[i] == '=' {
			return false
		}
	}
	return true
}
