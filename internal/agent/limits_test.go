package agent_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
)

// busy is a model that always looks again, at something else each time.
func busy() *scripted.Model {
	n := 0
	return scripted.Playing(func(agent.Request) scripted.Step {
		n++
		return scripted.Step{Calls: []scripted.Call{use("look", strings.Repeat("x", n))}, Usage: agent.Usage{Input: 100, Output: 50}}
	})
}

func TestRun_EachLimitEndsTheTurnCleanly(t *testing.T) {
	price := func(u agent.Usage) (int64, bool) { return u.Total() * 10, true }
	for want, limits := range map[agent.Ending]agent.Limits{
		agent.StepLimit:  {Steps: 3},
		agent.TokenLimit: {Tokens: 400},
		agent.CostLimit:  {Cost: 4000},
	} {
		result, _ := play(t, t.Context(), agent.Turn{Model: busy(), Tools: []agent.Tool{echo("look", false)}, Limits: limits, Price: price})
		wantEnding(t, result, want)
		if result.Steps != 3 || !result.Ending.Resumable() || result.Err != nil {
			t.Errorf("%s after %d steps: %v", want, result.Steps, result.Err)
		}
	}
}

func TestRun_TheTimeLimitEndsToolsAndAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := tool("wait", true, func(ctx context.Context, _ map[string]any, _ io.Writer) (agent.Output, error) {
			<-ctx.Done()
			return agent.Output{}, ctx.Err()
		})
		start := time.Now()
		result, _ := play(t, t.Context(), agent.Turn{
			Model: scripted.New(scripted.Step{Calls: []scripted.Call{use("wait", "1")}}), Tools: []agent.Tool{forever}, Limits: agent.Limits{Time: time.Minute},
		})
		wantEnding(t, result, agent.TimeLimit)
		if time.Since(start) != time.Minute || results(result.Messages)[0].Status != agent.Stopped {
			t.Errorf("after %v: %+v", time.Since(start), results(result.Messages)[0])
		}
		result, _ = play(t, t.Context(), agent.Turn{Model: scripted.New(scripted.Step{Text: "a b c d e f", Pace: 25 * time.Second}), Limits: agent.Limits{Time: time.Minute}})
		wantEnding(t, result, agent.TimeLimit)
		if got := result.Messages[0].Parts[0].Text; got != "a b " {
			t.Errorf("kept %q", got)
		}
	})
}

func TestRun_TheTimeOfAPersonDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		permit := func(context.Context, agent.Call, agent.Tool) (agent.Decision, error) {
			time.Sleep(10 * time.Hour)
			return agent.Decision{Allow: true}, nil
		}
		model := scripted.New(scripted.Step{Calls: []scripted.Call{use("look", "1"), use("look", "2")}}, scripted.Step{Text: "a b c d", Pace: 25 * time.Second})
		result, _ := play(t, t.Context(), agent.Turn{Model: model, Permit: permit, Tools: []agent.Tool{echo("look", false)}, Limits: agent.Limits{Time: time.Minute}})
		wantEnding(t, result, agent.TimeLimit)
		if r := results(result.Messages); r[0].Status != agent.OK || r[1].Status != agent.OK {
			t.Errorf("results %+v %+v", r[0], r[1])
		}
	})
}

func TestRun_AnAnswerInCountlessPartsIsEnded(t *testing.T) {
	result, _ := play(t, t.Context(), agent.Turn{Model: shredder{}})
	wantEnding(t, result, agent.SizeLimit)
	if n := len(result.Messages[0].Parts); n > 2001 {
		t.Errorf("kept %d parts", n)
	}
}

// shredder is a model that thinks in letters, and hides most of it.
type shredder struct{}

func (shredder) Stream(_ context.Context, _ agent.Request, emit func(agent.Chunk) error) (agent.Finish, error) {
	for {
		for _, c := range []agent.Chunk{
			{Kind: agent.ChunkText, Text: "x"}, {Kind: agent.ChunkThinking, Text: "y"}, {Kind: agent.ChunkOpaque, Opaque: &agent.Opaque{Redacted: true}},
		} {
			if err := emit(c); err != nil {
				return agent.Finish{}, err
			}
		}
	}
}

func TestRun_TokensEndAnAnswerInItsMiddle(t *testing.T) {
	model := scripted.New(scripted.Step{Text: strings.Repeat("word ", 10_000)})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Limits: agent.Limits{Tokens: 100}})
	wantEnding(t, result, agent.TokenLimit)
	if n := len(result.Messages[0].Parts[0].Text); n < 300 || n > 500 || !result.Usage.Estimated {
		t.Errorf("kept %d bytes, usage %+v", n, result.Usage)
	}
}

func TestRun_AnEndlessAnswerIsEnded(t *testing.T) {
	model := scripted.New(scripted.Step{Text: strings.Repeat(strings.Repeat("x", 1000)+" ", 2000)})
	result, _ := play(t, t.Context(), agent.Turn{Model: model})
	wantEnding(t, result, agent.SizeLimit)
}

func TestRun_AModelThatRunsInCirclesIsToldAndThenEnded(t *testing.T) {
	model := scripted.Playing(func(agent.Request) scripted.Step { return scripted.Step{Calls: []scripted.Call{use("look", "same")}} })
	result, rec := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{echo("look", false)}})
	wantEnding(t, result, agent.Looped)
	told := 0
	for _, r := range results(result.Messages) {
		if strings.Contains(r.Text, "the same arguments and the same result") {
			told++
		}
	}
	if result.Steps != 6 || told != 4 || !strings.Contains(rec.text(agent.NoticeGiven), "again and again") {
		t.Errorf("%d steps, told %d times, %s", result.Steps, told, rec.text(agent.NoticeGiven))
	}
}

func TestRun_RepeatingIsNoCircleWhenSomethingChanged(t *testing.T) {
	n := 0
	model := scripted.Playing(func(agent.Request) scripted.Step {
		n++
		return scripted.Step{Calls: []scripted.Call{use("test", "all"), use("edit", strings.Repeat("x", n))}}
	})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{echo("test", false), echo("edit", true)}, Limits: agent.Limits{Steps: 20}})
	wantEnding(t, result, agent.StepLimit)
}

func TestRun_WaitingForOutputIsNoCircle(t *testing.T) {
	wait := echo("wait", false)
	wait.Repeats = true
	model := scripted.Playing(func(agent.Request) scripted.Step { return scripted.Step{Calls: []scripted.Call{use("wait", "1")}} })
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{wait}, Limits: agent.Limits{Steps: 25}})
	wantEnding(t, result, agent.StepLimit)
	result, _ = play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{wait}})
	wantEnding(t, result, agent.Looped)
}

func TestRun_BrokenArgumentsAreExplained(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"x": "1"`:      "unexpected end of JSON input",
		`{"x": oops}`:    `near "{\"x\": oops}"`,
		`["x"]`:          "no object",
		`null`:           "null",
		`{"x":1}{"x":2}`: "after top-level value",
	} {
		called := false
		look := tool("look", false, func(context.Context, map[string]any, io.Writer) (agent.Output, error) {
			called = true
			return agent.Output{}, nil
		})
		model := scripted.New(scripted.Step{Calls: []scripted.Call{{Name: "look", Arguments: arguments}}})
		result, _ := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{look}})
		wantEnding(t, result, agent.Done)
		r, call := results(result.Messages)[0], result.Messages[0].Parts[0].Call
		if called || r.Status != agent.Error || !strings.Contains(r.Text, want) || string(call.Arguments) != "{}" || call.Broken != arguments {
			t.Errorf("%s: %s, %+v", arguments, r.Text, call)
		}
	}
}

func TestRun_AHugeArgumentIsRefusedAndNotKept(t *testing.T) {
	shown := 0
	model := scripted.New(scripted.Step{Calls: []scripted.Call{{Name: "look", Arguments: `{"x":"` + strings.Repeat("y", 10<<20) + `"}`}}})
	result, rec := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{echo("look", false)}})
	wantEnding(t, result, agent.Done)
	for _, e := range rec.events {
		shown += len(e.Text)
	}
	if r := results(result.Messages)[0]; !strings.Contains(r.Text, "10,485,768 bytes") || shown > agent.MaxArguments+1000 {
		t.Errorf("%s, shown %d bytes", r.Text, shown)
	}
	if n := len(wire(t, result.Messages)); n > 5000 {
		t.Errorf("the transcript has %d bytes", n)
	}
}

func TestRun_MoreCallsThanAreTakenAreIgnoredAndTold(t *testing.T) {
	var calls []scripted.Call
	for range agent.MaxCalls + 36 {
		calls = append(calls, use("look", "1"))
	}
	model := scripted.New(scripted.Step{Calls: calls})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{echo("look", false)}})
	last := result.Messages[1].Parts[len(result.Messages[1].Parts)-1]
	if n := len(results(result.Messages)); n != agent.MaxCalls || !strings.HasPrefix(last.Text, "36 more calls were ignored") {
		t.Errorf("%d results, %q", n, last.Text)
	}
}

func TestRun_HostileNamesAndIDsAreReplaced(t *testing.T) {
	model := scripted.New(
		scripted.Step{Calls: []scripted.Call{{ID: "x", Name: "look", Arguments: "{}"}, {ID: "x", Name: "../\u202eevil\x00" + strings.Repeat("n", 500), Arguments: "{}"}, {ID: "no good", Arguments: "{}"}}},
		scripted.Step{Calls: []scripted.Call{{ID: "x", Name: "look", Arguments: ""}}},
	)
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{echo("look", false)}})
	wantEnding(t, result, agent.Done)
	if r := results(result.Messages); len(r) != 4 || r[1].Status != agent.Error || !strings.Contains(r[2].Text, `"unnamed"`) || r[3].Status != agent.OK {
		t.Errorf("%s", wire(t, result.Messages))
	}
}

func TestRun_StopsOfOtherSorts(t *testing.T) {
	for want, step := range map[agent.Ending]scripted.Step{
		agent.CutOff:   {Text: "Half", Stop: agent.StopLength},
		agent.Declined: {Text: "No.", Stop: agent.StopDecline, Calls: []scripted.Call{use("look", "1")}},
	} {
		result, _ := play(t, t.Context(), agent.Turn{Model: scripted.New(step), Tools: []agent.Tool{echo("look", false)}})
		wantEnding(t, result, want)
	}
	// A call at the end of an answer that was cut off is not made, even if what came of it can be read.
	model := scripted.New(scripted.Step{Stop: agent.StopLength, Calls: []scripted.Call{use("look", "1"), {Name: "look"}}})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{echo("look", false)}})
	if r := results(result.Messages); r[0].Status != agent.OK || r[1].Status != agent.Error {
		t.Errorf("results %+v %+v", r[0], r[1])
	}
}

func TestRun_FailuresAreTriedAgainAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		model := scripted.New(scripted.Failing(agent.RateLimited, 7*time.Second), scripted.Failing(agent.Overloaded, 0), scripted.Failing(agent.Unreachable, 0), scripted.Step{Text: "Hello."})
		result, rec := play(t, t.Context(), agent.Turn{Model: model})
		wantEnding(t, result, agent.Done)
		// Seven seconds as asked, then two and four without up to a quarter.
		if took := time.Since(start); took < 11500*time.Millisecond || took > 13*time.Second {
			t.Errorf("it took %v", took)
		}
		if said := rec.text(agent.NoticeGiven); strings.Count(said, "Trying again in") != 3 || !strings.Contains(said, "Trying again in 7s (2 of 5).") {
			t.Errorf("told %q", said)
		}
		if result.Steps != 1 || len(model.Requests()) != 4 {
			t.Errorf("%d steps, %d requests", result.Steps, len(model.Requests()))
		}
	})
}

func TestRun_TriesEnd(t *testing.T) {
	for code, want := range map[agent.Code]int{
		agent.RateLimited: 5, agent.Overloaded: 5, agent.Unreachable: 5, agent.NoAnswer: 2, agent.Broken: 2, agent.Silent: 2,
		agent.Unauthorized: 1, agent.NotThere: 1, agent.Rejected: 1, agent.BadProtocol: 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			model := scripted.Playing(func(agent.Request) scripted.Step { return scripted.Failing(code, 0) })
			result, _ := play(t, t.Context(), agent.Turn{Model: model})
			wantEnding(t, result, agent.Failed)
			if n := len(model.Requests()); n != want || agent.CodeOf(result.Err) != code || len(result.Messages) != 0 {
				t.Errorf("%s: %d requests, %v", code, n, result.Err)
			}
		})
	}
}

func TestRun_AWaitThatIsTooLongEndsTheTurn(t *testing.T) {
	model := scripted.New(scripted.Failing(agent.RateLimited, time.Hour))
	result, _ := play(t, t.Context(), agent.Turn{Model: model})
	wantEnding(t, result, agent.Failed)
	var m *agent.ModelError
	if !errors.As(result.Err, &m) || m.Wait != time.Hour {
		t.Errorf("error %v", result.Err)
	}
}

func TestRun_CancelEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		result, _ := play(t, ctx, agent.Turn{Model: scripted.New(scripted.Failing(agent.RateLimited, time.Minute))})
		wantEnding(t, result, agent.Cancelled)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestRun_AnAnswerThatDiesInItsMiddleIsKeptAndNotTriedAgain(t *testing.T) {
	dying := scripted.Step{Text: "Half an", Err: agent.Failure(agent.Broken, io.ErrUnexpectedEOF, "The answer of the provider ended in its middle.")}
	model := scripted.New(dying, scripted.Step{Text: "answer."})
	result, _ := play(t, t.Context(), agent.Turn{Model: model})
	wantEnding(t, result, agent.Failed)
	if agent.CodeOf(result.Err) != agent.Broken || !errors.Is(result.Err, io.ErrUnexpectedEOF) || result.Messages[0].Parts[0].Text != "Half an" || len(model.Requests()) != 1 {
		t.Errorf("%v: %s", result.Err, wire(t, result.Messages))
	}
}
