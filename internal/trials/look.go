package trials

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Bounds of what is shown of a try.
const (
	itemsRead = 1000    // of its conversation, the last ones
	bytesRead = 8 << 20 // of these
	MaxWords  = 600     // bytes of its last words
	MaxFiles  = 100
	maxPath   = 500 // bytes
	looksKept = 200 // tries whose conversations are remembered
)

// Try is a clone as it is now.
type Try struct {
	Clone
	N            int               // from 1
	Box          sandbox.Sandbox   // the zero value when it is not there
	Conversation chat.Conversation // the zero value when there is none
	Seen
}

// Seen is what the conversation of a try shows.
type Seen struct {
	Words string // the last that the agent said, the beginning of it cut off
	Files []File // that its agent has changed with its tools, by path
	More  bool   // there are others, or may be: what it did long ago is not looked at
}

// File is one that an agent has changed. What commands change is not known.
type File struct {
	Path             string
	Created, Deleted bool
	Added, Removed   int // lines, of all changes
}

// looks remembers what conversations show, by their last change, as it is asked for again and again.
type looks struct {
	mu  sync.Mutex
	all map[string]look
}

type look struct {
	rev  int64
	seen Seen
}

// Look gives the clones of a trial as they are now.
func (s *Service) Look(ctx context.Context, t Trial) ([]Try, error) {
	boxes, err := s.c.Sandboxes.All(ctx)
	if err != nil {
		return nil, err
	}
	tries := make([]Try, len(t.Clones))
	for i, c := range t.Clones {
		tries[i] = Try{Clone: c, N: i + 1, Box: boxes[c.Sandbox]}
		if c.Conversation == "" || tries[i].Box.ID == "" {
			continue
		}
		talk, err := s.c.Chat.Conversation(ctx, c.Sandbox, c.Conversation)
		if fault.Is(err, fault.NotFound) { // a person has deleted it
			continue
		}
		if err == nil {
			tries[i].Conversation = talk
			tries[i].Seen, err = s.seen(ctx, talk)
		}
		if err != nil {
			return nil, err
		}
	}
	return tries, nil
}

func (s *Service) seen(ctx context.Context, c chat.Conversation) (Seen, error) {
	s.looks.mu.Lock()
	before, known := s.looks.all[c.ID]
	s.looks.mu.Unlock()
	if known && before.rev == c.Rev {
		return before.seen, nil
	}
	v, err := s.c.Chat.View(ctx, c.ID, chat.ItemQuery{Limit: itemsRead, Bytes: bytesRead, Shown: true})
	if err != nil {
		return Seen{}, err
	}
	seen := seenIn(v.Items)
	seen.More = seen.More || len(v.Items) > 0 && v.Items[0].N > 1
	s.looks.mu.Lock()
	defer s.looks.mu.Unlock()
	if s.looks.all == nil || len(s.looks.all) >= looksKept {
		s.looks.all = map[string]look{}
	}
	s.looks.all[c.ID] = look{v.Conversation.Rev, seen}
	return seen, nil
}

func seenIn(items []chat.Item) (seen Seen) {
	files := map[string]*File{}
	for _, it := range items {
		var call chat.Call
		switch {
		case it.Undone:
			continue
		case it.Kind == chat.Text && strings.TrimSpace(it.Text) != "":
			seen.Words = ending(strings.TrimSpace(it.Text))
		case it.Kind == chat.CallItem && json.Unmarshal(it.Data, &call) == nil:
			for _, d := range call.Diffs {
				seen.More = !add(files, d) || seen.More
			}
		}
	}
	for _, f := range files {
		seen.Files = append(seen.Files, *f)
	}
	slices.SortFunc(seen.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return seen
}

// add notes a change of a file; false when there are too many.
func add(files map[string]*File, d chat.Diff) bool {
	path := text.OneLine(d.Path, maxPath)
	f := files[path]
	if f == nil {
		if len(files) >= MaxFiles {
			return false
		}
		f = &File{Path: path, Created: d.Created}
		files[path] = f
	}
	f.Deleted = d.Deleted
	f.Added += max(0, d.Added)
	f.Removed += max(0, d.Removed)
	return true
}

// ending gives the end of a text that is longer than what is shown.
func ending(s string) string {
	if len(s) <= MaxWords {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-MaxWords:], "")
}
