package kopia

import (
	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
)

// What a child is asked to do.
const (
	DoConnect  = "connect"
	DoList     = "list"
	DoSave     = "save"
	DoRead     = "read"
	DoDelete   = "delete"
	DoCheck    = "check"
	DoMaintain = "maintain"
)

// StreamFile is the descriptor of the pipe that has the stream, in a child that saves or reads.
const StreamFile = 3

// Request is the first line on a child's standard input. That stays open: the child ends when it is closed.
type Request struct {
	Do       string            `json:"do"`
	Access   repository.Access `json:"access"`
	Folder   string            `json:"folder"` // for what kopia keeps on this machine; removed at will
	Instance string            `json:"instance"`
	TakeOver bool              `json:"take_over,omitempty"`
	Known    bool              `json:"known,omitempty"`
	ID       string            `json:"id,omitempty"`
	Title    string            `json:"title,omitempty"`
	IDs      []string          `json:"ids,omitempty"`
	Contents bool              `json:"contents,omitempty"` // all is read, of a check, or back, of one who saves
}

// End is the second line, of one who saves: all of the stream was written. Without it nothing is kept.
type End struct {
	Size  int64  `json:"size"`
	About []byte `json:"about"`
}

// Answer is a line on a child's standard output. The last one has Done or Fault.
type Answer struct {
	Opened   bool                 `json:"opened,omitempty"` // the stream can be written, or read
	Progress *repository.Progress `json:"progress,omitempty"`
	Done     bool                 `json:"done,omitempty"`
	Fault    *Fault               `json:"fault,omitempty"`

	Connected repository.Connected `json:"connected,omitzero"`
	Contents  *repository.Contents `json:"contents,omitempty"`
	Item      *repository.Item     `json:"item,omitempty"`
	Checked   *repository.Checked  `json:"checked,omitempty"`
}

// Fault is an error on its way to the parent.
type Fault struct {
	Kind    fault.Kind `json:"kind"`
	Field   string     `json:"field,omitempty"`
	Message string     `json:"message"`          // for admins
	Public  string     `json:"public,omitempty"` // for others, if that is not for them
	Detail  string     `json:"detail,omitempty"` // for the log
	Item    bool       `json:"item,omitempty"`   // it is a repository.ItemError
}
