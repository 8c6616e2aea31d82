package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/repository"
	"sandboxd/internal/seal"
	"sandboxd/internal/sqlite"
)

// keyFile is the file of the data folder that secrets are sealed with.
func keyFile(c *Config) string { return filepath.Join(c.Data, "secret.key") }

// newRepositories reads which backup repositories there are.
func newRepositories(ctx context.Context, a *app) (*repository.Service, error) {
	instance, err := a.db.Instance(ctx)
	if err != nil {
		return nil, err
	}
	engine := kopiaEngine(instance, filepath.Join(a.config.Data, "kopia"), a.log)
	return openRepositories(ctx, a.config, a.db, recordedEngine{engine, a.activity}, a.log)
}

func kopiaEngine(instance, folder string, log *slog.Logger) *kopia.Engine {
	return &kopia.Engine{Program: []string{ownProgram, kopiaChild}, Folder: folder, Instance: instance, Log: log}
}

func openRepositories(ctx context.Context, c *Config, db *sqlite.DB, engine repository.Engine, log *slog.Logger) (*repository.Service, error) {
	return repository.Open(ctx, repository.Config{
		Store: db.Repositories(), Engine: engine, Log: log, Seal: func() (repository.Sealer, error) { return seal.Open(keyFile(c)) },
		Own: []string{c.Data, backupFolder(c)},
	})
}

// lookRepositories looks whether the backup repositories can be reached, with a cache of its own.
func lookRepositories(ctx context.Context, c *Config) finding {
	_, err := os.Stat(keyFile(c))
	if errors.Is(err, fs.ErrNotExist) { // then there has never been one
		return ok("no backup repositories")
	}
	if err != nil {
		return problem("Run doctor as the user who runs 'sandboxd serve'.", "the key file of the backup repositories cannot be read: %v", err)
	}
	folder, err := os.MkdirTemp("", "sandboxd-doctor-*")
	if err != nil {
		return problem("", "no folder can be made for the cache: %v", err)
	}
	defer os.RemoveAll(folder)
	service, closeDB, err := repositoriesBeside(ctx, c, folder)
	if err != nil {
		return problem("", "the backup repositories cannot be read: %s", fault.Message(err))
	}
	defer closeDB()
	var lost []string
	for _, name := range service.Names() {
		if err := service.Look(ctx, name); err != nil {
			lost = append(lost, name+" ("+strings.TrimSuffix(fault.Message(err), ".")+")")
		}
	}
	switch n := len(service.Names()); {
	case len(lost) > 0:
		return problem("An admin finds them under Settings, Repositories.", "%d of %d backup repositories cannot be used: %s", len(lost), n, strings.Join(lost, ", "))
	case n == 0:
		return ok("no backup repositories")
	default:
		return ok("backup repositories that can be reached: %s", strings.Join(service.Names(), ", "))
	}
}

// repositoriesBeside opens the repositories beside a server that may be running.
func repositoriesBeside(ctx context.Context, c *Config, cache string) (*repository.Service, func() error, error) {
	db, err := openDatabase(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	instance, err := db.Instance(ctx)
	var s *repository.Service
	if err == nil {
		quiet := slog.New(slog.DiscardHandler)
		s, err = openRepositories(ctx, c, db, kopiaEngine(instance, cache, quiet), quiet)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return s, db.Close, nil
}
