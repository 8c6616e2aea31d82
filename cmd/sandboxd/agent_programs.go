package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/acp/install"
	"sandboxd/internal/agent"
	"sandboxd/internal/chat"
	"sandboxd/internal/chat/program"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/wire"
)

// newPrograms makes the driver of agents that are programs in their sandbox.
func newPrograms(a *app, catalog *install.Catalog, control *access.Control, commands *exec.Service, limits agent.Limits) *program.Driver {
	return program.New(program.Config{Agents: startable{catalog}, Programs: keptPrograms{a, control, commands},
		Models: "http://127.0.0.1:" + strconv.Itoa(wire.ModelsPort), Home: wire.HomePath,
		Limits: program.Limits{Tokens: limits.Tokens, Cost: limits.Cost, Time: limits.Time}})
}

// left ends the programs of a conversation that is deleted. Those of one whose turn was stopped wait for the next message.
func left(a *app, programs *program.Driver, c chat.Conversation) {
	ctx := context.Background() // has a limit
	if _, err := a.db.Chat().Conversation(ctx, c.ID); c.Agent == chat.OwnAgent || !fault.Is(err, fault.NotFound) {
		return
	}
	if err := programs.Left(ctx, c); err != nil && !fault.Is(err, fault.NotFound) {
		a.log.Warn("end the agent of a deleted conversation", "conversation", c.ID, "error", err)
	}
}

// startable implements program.Agents.
type startable struct{ catalog *install.Catalog }

func (s startable) Agent(id string) (program.Start, error) {
	a, err := s.catalog.Agent(id)
	return program.Start(a), err
}

// keptPrograms keeps programs in the sandboxes of conversations.
type keptPrograms struct {
	a        *app
	control  *access.Control
	commands *exec.Service
}

// Kept implements program.Programs.
func (p keptPrograms) Kept(ctx context.Context, c chat.Conversation) (list []program.Kept, err error) {
	h, err := handleOf(ctx, p.a, p.control, c)
	if err != nil {
		return nil, err
	}
	s, err := h.Open(ctx, idle.Use{Kind: idle.Agent})
	if err != nil {
		return nil, err
	}
	defer s.Release()
	all, err := s.Guest.ListKept(ctx)
	for _, k := range all {
		list = append(list, program.Kept{ID: k.ID, Ended: !k.Ended.IsZero()})
	}
	return list, err
}

// Keep implements program.Programs.
func (p keptPrograms) Keep(ctx context.Context, c chat.Conversation, id string, l program.Start) error {
	h, err := handleOf(ctx, p.a, p.control, c)
	if err != nil {
		return err
	}
	env := map[string]string{}
	for _, pair := range l.Env {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	err = p.commands.Keep(ctx, h, id, exec.Request{Command: l.Command, Cwd: l.Cwd, Env: env})
	if fault.Is(err, fault.NotFound) && fault.FieldOf(err) == "command" {
		err = fault.Wrap(err, fault.Conflict, "%s is not installed in this sandbox.", l.Name)
	}
	return err
}

// Attach implements program.Programs.
func (p keptPrograms) Attach(ctx context.Context, c chat.Conversation, id string, from program.Offsets) (program.Pipe, error) {
	h, err := handleOf(ctx, p.a, p.control, c)
	if err != nil {
		return nil, err
	}
	return p.commands.Attach(ctx, h, id, exec.Offsets(from)), nil
}

// End implements program.Programs.
func (p keptPrograms) End(ctx context.Context, c chat.Conversation, prefix string) error {
	h, err := handleOf(ctx, p.a, p.control, c)
	if err != nil {
		return err
	}
	s, err := h.Look(ctx)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.Gone) { // it does not run
		return nil
	}
	if err != nil {
		return err
	}
	all, err := s.Guest.ListKept(ctx)
	for _, k := range all {
		if strings.HasPrefix(k.ID, prefix) {
			err = errors.Join(err, s.Guest.EndKept(ctx, k.ID))
		}
	}
	return err
}
