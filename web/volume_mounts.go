package web

import (
	"path"
	"slices"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/volume"
)

// The states of a volume in a sandbox.
const (
	volumeThere  = "mounted"
	volumeComes  = "after_restart" // it gets it, or its other mode, when it starts next
	volumeLeaves = "until_restart" // it has it until then
)

// boxVolume is a volume of a sandbox, with its state there.
type boxVolume struct {
	volume volume.Volume // of one that is deleted only the name and the mode
	path   string
	state  string
}

// volumesOf gives the volumes that a sandbox has, or gets when it starts next. What is not known counts as mounted.
func (s *volumeHandlers) volumesOf(box sandbox.Sandbox) (list []boxVolume) {
	have, known := s.cfg.Sandboxes.Mounted(box.ID)
	wanted := s.cfg.Volumes.Of(box)
	for _, v := range wanted {
		one := boxVolume{volume: v, path: v.Target(), state: volumeThere}
		if known && !slices.Contains(have, sandbox.Mount{Volume: v.ID, Target: one.path, ReadOnly: v.Mode != volume.ReadWrite}) {
			one.state = volumeComes
		}
		list = append(list, one)
	}
	all := s.cfg.Volumes.List()
	for _, m := range have {
		if slices.ContainsFunc(wanted, func(v volume.Volume) bool { return v.Target() == m.Target }) {
			continue
		}
		one := boxVolume{volume: volume.Volume{Name: path.Base(m.Target), Mode: volume.ReadWrite}, path: m.Target, state: volumeLeaves}
		if m.ReadOnly {
			one.volume.Mode = volume.ReadOnly
		}
		if i := slices.IndexFunc(all, func(v volume.Volume) bool { return v.ID == m.Volume }); i >= 0 {
			one.volume.Note = all[i].Note
		}
		list = append(list, one)
	}
	return list
}

// boxVolumeShape is that as programs see it.
type boxVolumeShape struct {
	Name  string `json:"name"`
	Note  string `json:"note"`
	Mode  string `json:"mode"`
	Path  string `json:"path"`
	Size  *int64 `json:"size"` // bytes, when it was last measured
	State string `json:"state"`
}

func (s *volumeHandlers) boxVolumeShapes(box sandbox.Sandbox) []boxVolumeShape {
	out := []boxVolumeShape{}
	for _, one := range s.volumesOf(box) {
		out = append(out, boxVolumeShape{Name: one.volume.Name, Note: one.volume.Note, Mode: string(one.volume.Mode), Path: one.path, Size: s.size(one.volume), State: one.state})
	}
	return out
}
