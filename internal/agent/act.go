package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"sandboxd/internal/fault"
)

// act runs the calls of one answer, adds their results, and says whether that ends the turn.
func (r *run) act(ctx context.Context, calls []Call, ignored int) (Ending, error) {
	a := &acting{run: r, calls: calls, results: make([]*ToolResult, len(calls))}
	for i := 0; i < len(calls); {
		next := a.group(i)
		a.do(ctx, i, next)
		i = next
	}
	parts := make([]Part, len(calls), len(calls)+1)
	for i, result := range a.results {
		parts[i] = Part{Kind: PartResult, Result: result}
	}
	if ignored > 0 {
		parts = append(parts, textPart(fmt.Sprintf("%d more calls were ignored: at most %d are taken at once.", ignored, MaxCalls)))
	}
	r.add(Message{ID: newID(), Role: User, Parts: parts, Auto: true})
	if ctx.Err() != nil {
		return endingOf(ctx), nil
	}
	return a.ending, a.err
}

// answerAll gives each call a result that says why it was not made.
func (r *run) answerAll(calls []Call, why string) {
	if len(calls) == 0 {
		return
	}
	parts := make([]Part, len(calls))
	for i, call := range calls {
		result := &ToolResult{CallID: call.ID, Status: Stopped, Text: why}
		r.emit(Event{Kind: ToolDone, CallID: call.ID, Name: call.Name, Result: result})
		parts[i] = Part{Kind: PartResult, Result: result}
	}
	r.add(Message{ID: newID(), Role: User, Parts: parts, Auto: true})
}

// acting is the calls of one answer.
type acting struct {
	*run
	calls   []Call
	results []*ToolResult

	mu     sync.Mutex
	ending Ending
	err    error
}

// end ends the turn after these calls, for the first reason that is given.
func (a *acting) end(e Ending, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending == "" {
		a.ending, a.err = e, err
	}
}

func (a *acting) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending != ""
}

// find gives the tool of a call.
func (r *run) find(call Call) (Tool, bool) {
	for _, t := range r.Tools {
		if t.Name == call.Name {
			return t, true
		}
	}
	return Tool{}, false
}

// group gives the end of the calls from i on that may run at once: one that changes something, or all that follow each other and do not.
func (a *acting) group(i int) int {
	if t, _ := a.find(a.calls[i]); t.Changes {
		return i + 1
	}
	for i++; i < len(a.calls); i++ {
		if t, _ := a.find(a.calls[i]); t.Changes {
			break
		}
	}
	return i
}

// do runs a group: asks for each in order, then runs those that may.
func (a *acting) do(ctx context.Context, from, to int) {
	var runs sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i := from; i < to; i++ {
		tool, result := a.check(ctx, a.calls[i])
		if result != nil {
			a.finish(i, tool, result)
			continue
		}
		runs.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a.finish(i, tool, a.call(ctx, tool, a.calls[i]))
		})
	}
	runs.Wait()
}

// finish keeps a result and tells it.
func (a *acting) finish(i int, tool Tool, result *ToolResult) {
	a.repeated(tool, a.calls[i], result)
	a.results[i] = result
	a.emit(Event{Kind: ToolDone, CallID: result.CallID, Name: a.calls[i].Name, Result: result})
}

// check gives the tool of a call that may be made, else its result.
func (a *acting) check(ctx context.Context, call Call) (Tool, *ToolResult) {
	refuse := func(status Status, text string) *ToolResult {
		return &ToolResult{CallID: call.ID, Status: status, Text: text}
	}
	tool, known := a.find(call)
	switch {
	case ctx.Err() != nil || a.ended():
		return tool, refuse(Stopped, "The turn ended before this call was made. Nothing was done.")
	case !known:
		return tool, refuse(Error, unknownTool(call, a.Tools))
	case call.problem != "":
		return tool, refuse(Error, call.problem)
	case a.Permit == nil:
		return tool, nil
	}
	a.clock.pause()
	decision, err := a.Permit(ctx, call, tool)
	a.clock.resume()
	switch {
	case err != nil && ctx.Err() == nil:
		a.end(Failed, fmt.Errorf("ask for permission: %w", err))
		return tool, refuse(Stopped, "The turn ended before this call was permitted. Nothing was done.")
	case err != nil:
		return tool, refuse(Stopped, "The turn was cancelled before this call was permitted. Nothing was done.")
	case decision.Allow:
		return tool, nil
	}
	if decision.End {
		a.end(Refused, nil)
	}
	return tool, refuse(Denied, "The person refused this call, and it was not made."+reason(decision.Reason))
}

func reason(why string) string {
	if why == "" {
		return ""
	}
	return " They say: " + Shorten(why, 4000)
}

// call runs a tool.
func (r *run) call(ctx context.Context, tool Tool, call Call) *ToolResult {
	r.emit(Event{Kind: ToolBegun, CallID: call.ID, Name: call.Name})
	live := &live{emit: r.emit, call: call}
	output, err := runTool(ctx, tool, call.Arguments, live)
	kept := live.end()
	switch {
	case err == nil:
		return tool.bounded(call, output)
	case ctx.Err() != nil:
		return &ToolResult{CallID: call.ID, Status: Stopped, Text: joinLines(kept, "(It was cancelled before it ended.)")}
	}
	if r.Report != nil {
		r.Report(fmt.Errorf("run tool %s: %w", tool.Name, err))
	}
	return &ToolResult{CallID: call.ID, Status: Error, Text: joinLines(kept, fault.Message(err))}
}

// runTool turns a panic into an error: one bad tool must not take the server and all its sandboxes down.
func runTool(ctx context.Context, tool Tool, arguments json.RawMessage, out io.Writer) (o Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{value: p, stack: debug.Stack()}
		}
	}()
	if tool.Run == nil {
		return Output{}, errors.New("the tool has no function")
	}
	return tool.Run(ctx, arguments, out)
}

// panicked is a panic of a tool.
type panicked struct {
	value any
	stack []byte
}

// Error gives what a log needs to find the bug.
func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

func joinLines(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}
