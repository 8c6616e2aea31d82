package wire

import "encoding/json"

// MoverArgument makes the guest's program a mover: it dials SocketPath, does what it is told there with the volume at HomePath, and
// ends with the connection.
const MoverArgument = "mover"

// SnapshotPath is where a mover has the volume with a snapshot's copy of a home, if it is for one.
const SnapshotPath = "/.sandboxd/snapshot"

// SnapshotHome is the copy of a home in there. One that is in the storage pool is mounted at this place itself.
const SnapshotHome = SnapshotPath + "/home"

// What a mover can be told, as MoverJob.Do.
const (
	MoverRead     = "read"     // send the home as entries of a tar archive, without the archive's end
	MoverReplace  = "replace"  // make the home of the archive that follows, or leave it as it was
	MoverCopyOut  = "copy-out" // make the snapshot's copy of the home, in the place of what is left of an earlier one
	MoverCopyIn   = "copy-in"  // make the home of the snapshot's copy, or leave it as it was
	MoverCompare  = "compare"  // send what differs between the snapshot's copy and the home, each an archive.Difference
	MoverVersions = "versions" // send the FileVersions of a file
	MoverSettle   = "settle"   // finish or undo a replace or copy-in that was cut off
)

// MoverJob is the first thing that a mover is told, as FrameStart. FrameData with the archive follows a MoverReplace, and then
// FrameDataDone.
type MoverJob struct {
	Do     string `json:"do"`
	Prefix string `json:"prefix,omitempty"` // of the entries' names
	Path   string `json:"path,omitempty"`   // of a file in the home
	Most   int    `json:"most,omitempty"`   // differences, or bytes of each version
	Own    bool   `json:"own,omitempty"`    // all that is replaced belongs to whom the home belongs, whatever the archive says
}

// FileVersions is the beginning of a file, nil where there is no regular file.
type FileVersions struct {
	Before []byte `json:"before"` // in the snapshot's copy
	After  []byte `json:"after"`  // in the home
}

// MoverReport is what a mover says of its job as FrameReport: now and then, and at the end. FrameData comes before the last one of a
// MoverRead.
type MoverReport struct {
	Stats    json.RawMessage `json:"stats,omitempty"` // archive.Stats
	Done     bool            `json:"done,omitempty"`
	Finished bool            `json:"finished,omitempty"` // a MoverSettle has finished what was cut off
	Kind     string          `json:"kind,omitempty"`     // why not, when it has failed
	Error    string          `json:"error,omitempty"`    // the cause, for the log; of an invalid archive for people
}

// What can be wrong, as MoverReport.Kind.
const (
	MoverInvalid  = "invalid" // the archive's fault
	MoverFull     = "full"    // the disk's
	MoverAbsent   = "absent"  // the snapshot has no copy of a home
	MoverInternal = "internal"
)
