package web

import (
	"context"
	"net/http"
	"strconv"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// codeBody says which block of code of which item is run. What runs is the code that is stored, and only if it is the code that is seen.
type codeBody struct {
	ID    string `json:"id"` // the sender's, at most 64 bytes: the same again is one run
	Item  int64  `json:"item"`
	Block int    `json:"block"`
	Code  string `json:"code"` // as it is seen; "" when the sender has not looked
}

// apiRunBlock runs a block of code of a message or an answer: 202, with the item that shows what comes of it.
func (s *chatHandlers) apiRunBlock(ctx context.Context, r *request, in codeBody) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	it, err := s.cfg.Runs.Start(ctx, c.ID, chat.Run{ID: in.ID, User: r.who.User.ID, Item: in.Item, Block: in.Block, Code: in.Code})
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted, body: chatItems([]chat.Item{it})[0]}, nil
}

// apiCancelRun ends a run.
func (s *chatHandlers) apiCancelRun(ctx context.Context, r *request, _ none) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	n, err := strconv.ParseInt(r.param("run"), 10, 64)
	if err != nil {
		return reply{}, fault.New(fault.NotFound, "There is no run %.20q.", r.param("run"))
	}
	return reply{status: http.StatusNoContent}, s.cfg.Runs.Cancel(ctx, c.ID, n)
}
