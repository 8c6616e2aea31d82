package catalog

import (
	"fmt"

	"github.com/goccy/go-yaml"
)

// Manifest writes t as a template.yaml that is read as t again, but for its folder. It checks nothing.
func Manifest(t Template) ([]byte, error) {
	m := manifest{
		Name: t.Name, Title: t.Title, Description: t.Description, Icon: t.Icon, Base: t.Base, Root: t.Root, Image: t.Image, Profile: string(t.Profile), Env: t.Env,
		Size:  manifestSize{CPUs: t.Size.CPUs, Memory: sizeText(t.Size.Memory), Pids: t.Size.Pids, Disk: sizeText(t.Size.Disk)},
		Apart: manifestApart{Namespaces: t.Namespaces, IDE: t.IDE, FreezeAfter: t.Rest.FreezeAfter.String(), StopAfter: t.Rest.StopAfter.String(), Pool: float64(t.Pool)},
	}
	for _, p := range t.Ports {
		m.Ports = append(m.Ports, manifestPort{Port: p.Number, Title: p.Title})
	}
	for _, s := range t.Services {
		one := manifestService{Name: s.Name, Command: s.Command, Port: s.Port, Cwd: s.Cwd, Env: s.Env, Autostart: s.Autostart}
		if s.Health != nil {
			one.Health = &manifestHealth{Path: s.Health.Path}
			if s.Health.Interval != 0 {
				one.Health.Interval = s.Health.Interval.String()
			}
		}
		m.Services = append(m.Services, one)
	}
	return yaml.Marshal(m)
}

// sizeText writes bytes as a template.yaml has them, rounded up to MiB or, where that has too many digits, to GiB; "" for 0.
func sizeText(bytes int64) string {
	const mib, gib = 1 << 20, 1 << 30
	switch {
	case bytes == 0:
		return ""
	case bytes%gib == 0 || bytes > 1<<49:
		return fmt.Sprintf("%dGiB", (bytes+gib-1)/gib)
	}
	return fmt.Sprintf("%dMiB", (bytes+mib-1)/mib)
}
