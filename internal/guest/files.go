package guest

import (
	"net/http"

	"sandboxd/internal/guest/files"
	"sandboxd/internal/wire"
)

// fileRoutes lets sandboxd ask for files.
func (g *Guest) fileRoutes(mux *http.ServeMux) {
	mux.Handle("POST "+wire.PathFiles+"{verb}", g.files)
}

// filesConfig says whose files they are: those of the user as whom everything in the sandbox runs, as he is now.
func (g *Guest) filesConfig() files.Config {
	return files.Config{
		Root: g.cfg.Root,
		User: func() files.User {
			who, _ := g.accounts.find("") // the default user always exists
			u := files.User{UID: who.uid, GID: who.gid, Home: who.home}
			for _, group := range who.groups {
				u.Groups = append(u.Groups, int(group))
			}
			return u
		},
		Find: func(name string) string {
			path, _ := lookPath(name, g.base["PATH"], "/")
			return path
		},
		Env: func() []string {
			who, _ := g.accounts.find("")
			return g.environ(who, nil, false).list()
		},
	}
}
