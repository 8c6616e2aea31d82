package activity

import "context"

// Caller is who asks for something, and by which way.
type Caller struct {
	UserID, User string
	Token        string // id of the API token
	Via          Via
	From         string // IP address
	Request      string // id of the request
	Action       Action // as which the request itself is recorded; "" when it is not
}

type callerKey struct{}

// With gives a context that carries c to what is done under it.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf gives the Caller that ctx carries; ok is false when there is none.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// Entry begins an entry about what c asked for, which is Done.
func (c Caller) Entry(a Action) Entry {
	return Entry{UserID: c.UserID, User: c.User, Token: c.Token, Via: c.Via, From: c.From, Request: c.Request, Action: a, Outcome: Done}
}
