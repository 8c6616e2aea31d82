package gateway

import "sync/atomic"

// table is all that is configured, as each request sees it. It is never changed, only replaced.
type table struct {
	providers []configured
	aliases   []Alias
	budgets   []Budget
	settings  Settings
	prices    []Price // file's before the built-in ones
	ownPrices int     // how many of them are the file's
}

// configured is a provider with its key.
type configured struct {
	Provider
	key     string // "" for none
	problem error  // why the key cannot be read; nil when it can
}

// current holds the table.
type current struct{ at atomic.Pointer[table] }

func (c *current) table() *table {
	if t := c.at.Load(); t != nil {
		return t
	}
	return &table{}
}
