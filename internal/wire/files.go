package wire

import (
	"strconv"
	"time"
)

// PathFiles and a verb is what the guest serves of files. Every verb is a POST whose parameters stand in the query,
// percent-encoded, as a path is bytes; those that name many paths have them in the body instead, encoded likewise.
const PathFiles = "/v1/files/"

// The verbs of PathFiles.
const (
	FilesStat    = "stat"
	FilesList    = "list"
	FilesRead    = "read"
	FilesWrite   = "write"
	FilesUpload  = "upload"
	FilesAbandon = "abandon"
	FilesMkdir   = "mkdir"
	FilesMove    = "move"
	FilesCopy    = "copy"
	FilesDelete  = "delete"
	FilesTrash   = "trash"
	FilesRestore = "restore"
	FilesEmpty   = "empty"
	FilesChmod   = "chmod"
	FilesPack    = "pack"
	FilesUnpack  = "unpack"
	FilesSearch  = "search"
	FilesWatch   = "watch"
)

// Bounds of file calls and their answers.
const (
	MaxPath       = maxPath
	MaxFileName   = 255
	MaxFileForm   = 4 << 20 // the paths of one request, percent-encoded
	MaxFilePaths  = 10_000  // in one request
	MaxListing    = 10_000  // entries of one page
	MaxTrash      = 10_000  // entries of the trash that are told
	MaxFound      = 10_000  // results of one search
	MaxQuery      = 1024    // bytes that are searched for
	MaxFoundText  = 512     // bytes of a line in which something was found
	MaxWatched    = 64      // folders of one watch
	MaxUnpacked   = 2_000_000
	MaxFileMode   = 0o7777
	MaxCursor     = 1024 // bytes of Listing.Next, printable ASCII
	maxETag       = 64
	maxUploadName = 64
)

// FileType is what a path leads to.
type FileType string

// The types of files. A socket and a device are told of, and no more.
const (
	TypeFile   FileType = "file"
	TypeFolder FileType = "folder"
	TypeLink   FileType = "link"
	TypeFIFO   FileType = "fifo"
	TypeSocket FileType = "socket"
	TypeDevice FileType = "device"
)

// Entry is one file, folder or other thing in a folder. Of a link it tells the link's own, and what it leads to in
// Target and TargetType.
type Entry struct {
	Name       string // its last name, exact bytes; "/" for the root
	Type       FileType
	Size       int64
	Modified   time.Time
	Mode       uint32 // permissions, setuid, setgid and sticky bit: MaxFileMode at most
	UID, GID   uint32
	Owner      string   // name of UID, or its number
	Group      string   // name of GID, or its number
	Target     string   // of a link, exact bytes
	TargetType FileType // of a link: its target's type; "" when there is none or it may not be seen
	ETag       string   // strong, quoted, changes whenever the content does; of files only
}

// ETagOf makes the ETag of a file.
func ETagOf(inode uint64, size int64, modified time.Time) string {
	var room [maxETag]byte
	b := strconv.AppendUint(append(room[:0], '"'), inode, 36)
	b = strconv.AppendInt(append(b, '-'), size, 36)
	b = strconv.AppendInt(append(b, '-'), modified.Unix(), 36)
	b = strconv.AppendInt(append(b, '.'), int64(modified.Nanosecond()), 36)
	return string(append(b, '"'))
}

// Listing is one page of a folder: folders first, then by name without regard to case, then by bytes.
type Listing struct {
	Path    string // absolute
	Entries []Entry
	Next    string // what to give as after for the next page; "" when this is the last. Printable ASCII without meaning to others.
}

// FilePut says what to write where. A file is replaced by the new one as a whole, or not at all.
type FilePut struct {
	Path    string
	Upload  string // 1 to 64 of [A-Za-z0-9_-]: this is a piece of a resumable upload; "" when it is all in one
	Offset  int64  // of the piece: must be what the upload has already, else Conflict
	Size    int64  // of the whole file where known, which is then insisted on; negative otherwise
	Last    bool   // of a piece: the file is complete with it
	IfMatch string // ETag that the file must have now, "*" for any; "" when it does not matter
	IfNone  bool   // there must be none yet
	Mode    uint32 // permissions; 0 means the old file's, and 0644 for a new one
	Parents bool   // folders on the way are made
}

// Written is the result of a FilePut.
type Written struct {
	Entry   Entry // of the file; empty while pieces are missing
	Created bool  // there was none before
	Offset  int64 // how much there is
}

// Trashed is one thing in the trash of the sandbox's user.
type Trashed struct {
	ID      string    // its name in the trash, exact bytes
	Path    string    // where it was, absolute
	Deleted time.Time // by the sandbox's clock
	Type    FileType
	Size    int64 // of a file
}

// Unpacked says what an archive was unpacked to.
type Unpacked struct {
	Entries int64
	Bytes   int64 // of the files' contents
}

// SearchIn says what to search.
type SearchIn string

// What can be searched.
const (
	SearchNames   SearchIn = "names"   // a part of a name, or the whole as a glob when there is *, ? or [ in it
	SearchContent SearchIn = "content" // lines of text files
)

// Search says what to look for below which folder. Links are not followed.
type Search struct {
	Path  string
	Query string
	In    SearchIn
	Case  bool // upper and lower case differ
	Regex bool // Query is a regular expression of Go's syntax; contents only
	Limit int  // of results, 0 for MaxFound
}

// Found is one result of a search.
type Found struct {
	Path   string // below the folder searched, exact bytes
	Type   FileType
	Line   int    // in contents: of the match, from 1
	Column int    // in contents: byte of the line where the match begins, from 1
	Text   string // in contents: the line, or the part of it around the match; exact bytes, may hold anything
	Start  int    // in contents: where the match stands in Text
	End    int
}

// PartOf is how many bytes a file of that size has from offset on, length at most. A negative offset counts from the end, a
// negative length means to the end.
func PartOf(size, offset, length int64) int64 {
	if offset < 0 {
		offset = max(size+offset, 0)
	}
	left := max(size-offset, 0)
	if length < 0 {
		return left
	}
	return min(left, length)
}
