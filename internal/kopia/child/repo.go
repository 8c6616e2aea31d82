package child

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/format"
	"github.com/kopia/kopia/repo/maintenance"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/repository"
)

// What kopia keeps on this machine: indexes and metadata, so that it need not fetch them each time.
const (
	configName   = "config.json"
	cacheName    = "cache"
	cacheSize    = 256 << 20 // bytes
	listDuration = 0         // lists of blobs are not remembered
	hash         = "BLAKE3-256-128"
)

// userName begins the name of the one who uses a repository; the instance of the sandboxd follows.
const userName = "sandboxd"

func (c *child) client() repo.ClientOptions {
	return repo.ClientOptions{Hostname: c.Instance, Username: userName, Description: "sandboxd"}
}

// open opens the repository that is there. mine says that it must be this sandboxd's.
func (c *child) open(ctx context.Context, mine bool) (repo.DirectRepository, error) {
	store, err := c.openStorage(ctx, false)
	if err != nil {
		return nil, err
	}
	r, err := c.openIn(ctx, store)
	if err == nil && mine {
		err = c.checkOwner(ctx, r)
	}
	return r, err
}

// openIn opens the repository in a place. What is kept on this machine is made anew if it is missing or of another repository.
func (c *child) openIn(ctx context.Context, store *storage) (repo.DirectRepository, error) {
	c.store = store
	blob.AddSupportedStorage(storageType, nothing{}, func(context.Context, *nothing, bool) (blob.Storage, error) { return store, nil })
	if err := os.MkdirAll(c.Folder, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The cache of the repository cannot be made: %v.", err)
	}
	config := filepath.Join(c.Folder, configName)
	if _, err := os.Stat(config); errors.Is(err, fs.ErrNotExist) {
		if err := c.configure(ctx, store, config); err != nil {
			return nil, err
		}
	}
	r, err := repo.Open(ctx, config, c.Access.Secrets.Password, &repo.Options{DisableRepositoryLog: true, DoNotWaitForUpgrade: true})
	if err != nil {
		return nil, err
	}
	direct, ok := r.(repo.DirectRepository)
	if !ok {
		return nil, errors.New("the repository is not in a place of its own")
	}
	return direct, nil
}

// configure writes what kopia needs on this machine.
func (c *child) configure(ctx context.Context, store blob.Storage, config string) error {
	return repo.Connect(ctx, config, store, c.Access.Secrets.Password, &repo.ConnectOptions{ClientOptions: c.client(), CachingOptions: content.CachingOptions{
		CacheDirectory: filepath.Join(c.Folder, cacheName), MetadataCacheSizeBytes: cacheSize, MaxListCacheDuration: listDuration,
	}})
}

// connect makes a repository in an empty place, or takes the one that is there.
func (c *child) connect(ctx context.Context) (kopia.Answer, error) {
	if err := os.RemoveAll(c.Folder); err != nil { // it may be of another repository
		return kopia.Answer{}, fault.Wrap(err, fault.Unavailable, "The cache of the repository cannot be removed: %v.", err)
	}
	if err := os.MkdirAll(c.Folder, 0o700); err != nil { // temporary files are there too
		return kopia.Answer{}, fault.Wrap(err, fault.Unavailable, "The cache of the repository cannot be made: %v.", err)
	}
	store, err := c.openStorage(ctx, !c.Known)
	var there bool
	if err == nil {
		there, err = store.initialized(ctx)
	}
	if c.Known && (err == nil && !there || errors.Is(err, repo.ErrRepositoryNotInitialized)) {
		return kopia.Answer{}, fault.Field(c.Access.Place.Kind.Field(), "The repository %s is not there. To begin an empty one, remove %s from the list first, or choose another name.", c.Access.Name, c.Access.Name)
	}
	if err != nil {
		return kopia.Answer{}, err
	}
	if !there {
		if err := c.initialize(ctx, store); err != nil {
			return kopia.Answer{}, err
		}
	}
	r, err := c.openIn(ctx, store)
	if err != nil {
		return kopia.Answer{}, err
	}
	defer r.Close(ctx)
	if err := c.own(ctx, r, !there); err != nil {
		return kopia.Answer{}, err
	}
	_, err = c.tryOut(ctx)
	return kopia.Answer{Connected: repository.Connected{Created: !there, Identity: hex.EncodeToString(r.UniqueID())}}, err
}

func (c *child) initialize(ctx context.Context, store *storage) error {
	empty, err := store.empty(ctx)
	if err != nil {
		return err
	}
	if !empty {
		return notEmpty(c.Access.Place.Kind)
	}
	return repo.Initialize(ctx, store, &repo.NewRepositoryOptions{BlockFormat: format.ContentFormat{Hash: hash}}, c.Access.Secrets.Password)
}

// own makes this sandboxd the one that uses the repository. Conflict when that is another one, unless it is to be taken over.
func (c *child) own(ctx context.Context, r repo.DirectRepository, fresh bool) error {
	p, err := maintenance.GetParams(ctx, r)
	if err != nil {
		return err
	}
	me := c.client().UsernameAtHost()
	switch {
	case p.Owner == me:
		return nil
	case !fresh && p.Owner != "" && !strings.HasPrefix(p.Owner, userName+"@"):
		return fault.Field(c.Access.Place.Kind.Field(), "It is kopia's repository of %.60s, not one of sandboxd's. Choose an empty place.", p.Owner)
	case !fresh && p.Owner != "" && !c.TakeOver:
		return &fault.Error{Kind: fault.Conflict, Field: "take_over", Message: "Another sandboxd uses this repository (" + p.Owner +
			"). If that one is gone, take the repository over. Two must not use one."}
	}
	return repo.DirectWriteSession(ctx, r, repo.WriteSessionOptions{Purpose: "own"}, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		p.Owner = me
		return maintenance.SetParams(ctx, w, p)
	})
}

// checkOwner is a Conflict when another sandboxd has taken the repository over.
func (c *child) checkOwner(ctx context.Context, r repo.Repository) error {
	p, err := maintenance.GetParams(ctx, r)
	if err == nil && p.Owner != c.client().UsernameAtHost() {
		err = fault.New(fault.Conflict, "Another sandboxd has taken this repository over (%.60s). Remove it here, or take it back.", p.Owner)
	}
	return err
}
