package main

import (
	"context"
	"encoding/json"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sqlite"
	"sandboxd/internal/text"
)

// lookDatabase tells whether this sandboxd can use the database, and what becomes of it at the next start.
func lookDatabase(ctx context.Context, c *Config) finding {
	about, err := sqlite.Inspect(ctx, databasePath(c))
	switch known := sqlite.Known(); {
	case fault.Is(err, fault.NotFound):
		return ok("the data folder %s has no database yet", c.Data)
	case err != nil:
		return problem("Start sandboxd: it recovers what can be read.", "the database cannot be read: %v", err)
	case about.Version > known:
		return problem("", "%s", fault.Message(sqlite.Refusal(ctx, databasePath(c))))
	case about.Version < known:
		return warn("", "the next start upgrades the database from version %d to %d, and keeps a copy", about.Version, known)
	case about.Program == "":
		return ok("the database has version %d", about.Version)
	default:
		return ok("the database has version %d, and was served by sandboxd %s last", about.Version, about.Program)
	}
}

// lookServerBackup tells when the server was backed up last.
func lookServerBackup(ctx context.Context, c *Config) finding {
	about, err := sqlite.Inspect(ctx, databasePath(c))
	if err != nil || about.Backup == "" {
		return ok("no backup of the server has been made ('sandboxd backup --server' makes one)")
	}
	var note noteOfBackup
	if err := json.Unmarshal([]byte(about.Backup), &note); err != nil {
		return warn("", "what is noted of the last backup of the server cannot be read: %v", err)
	}
	days := int(time.Since(note.Made).Hours() / 24)
	where := note.File
	if where == stdio {
		where = "standard output"
	} else {
		where += ", " + text.Size(note.Size)
	}
	return ok("the server was last backed up at %s, %d days ago, to %s", day(note.Made, ""), days, where)
}
