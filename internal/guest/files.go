package guest

import "sandboxd/internal/guest/files"

// filesConfig serves files as the user as whom everything in the sandbox runs, as its account is at each request.
func (p *spawner) filesConfig(root string) files.Config {
	return files.Config{
		Root: root,
		User: func() files.User {
			who, _ := p.accounts.find("") // the default user always exists
			u := files.User{UID: who.uid, GID: who.gid, Home: who.home}
			for _, group := range who.groups {
				u.Groups = append(u.Groups, int(group))
			}
			return u
		},
		Find: func(name string) string {
			path, _ := lookPath(name, p.base["PATH"], "/") // "" when there is none
			return path
		},
		Env: func() []string {
			who, _ := p.accounts.find("") // always exists
			return p.environ(who, nil, false).list()
		},
	}
}
