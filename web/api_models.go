package web

import (
	"context"
	"strings"

	"sandboxd/internal/gateway"
)

// modelNamesShape are the names of models that can be asked for.
type modelNamesShape struct {
	Models []string `json:"models"`
}

// apiModels lists the names of models that programs of the caller's can ask for.
func (s *modelHandlers) apiModels(_ context.Context, r *request, _ none) (reply, error) {
	return reply{body: modelNamesShape{list(s.cfg.Models.Models(r.who.User.ID))}}, nil
}

// modelSettingsShape are the settings for all models.
type modelSettingsShape struct {
	Off        bool `json:"off"`
	LogContent bool `json:"log_content"`
}

// apiModelSettings answers with the settings, also for those whose prompts are logged by them.
func (s *modelHandlers) apiModelSettings(_ context.Context, _ *request, _ none) (reply, error) {
	return reply{body: modelSettingsShape(s.cfg.Models.Settings())}, nil
}

// modelSettingsBody changes settings. What is left out stays.
type modelSettingsBody struct {
	Off        *bool `json:"off"`
	LogContent *bool `json:"log_content"`
}

// apiSetModelSettings changes the settings.
func (s *modelHandlers) apiSetModelSettings(ctx context.Context, r *request, in modelSettingsBody) (reply, error) {
	set, err := s.changeModelSettings(ctx, r, in)
	return reply{body: modelSettingsShape(set)}, err
}

// changeModelSettings changes the settings, and has it recorded what was changed.
func (s *modelHandlers) changeModelSettings(ctx context.Context, r *request, in modelSettingsBody) (gateway.Settings, error) {
	s.settings.Lock()
	defer s.settings.Unlock()
	set := s.cfg.Models.Settings()
	var said []string
	if in.Off != nil {
		set.Off = *in.Off
		said = append(said, "models "+onOff[!set.Off])
	}
	if in.LogContent != nil {
		set.LogContent = *in.LogContent
		said = append(said, "content "+onOff[set.LogContent])
	}
	r.object = strings.Join(said, ", ")
	return set, s.cfg.Models.SetSettings(ctx, set)
}

// priceShape is what a model costs as programs see it, in dollars per million tokens.
type priceShape struct {
	Model string `json:"model"`
	ratesShape
	Date string         `json:"date"` // when it was on its provider's list; "" when that is not known
	Long *longRateShape `json:"long"` // null where long prompts cost the same
}

type ratesShape struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

type longRateShape struct {
	Above int64 `json:"above"` // tokens of the prompt
	ratesShape
}

type pricesShape struct {
	Prices []priceShape `json:"prices"`
}

// apiModelPrices lists the prices.
func (s *modelHandlers) apiModelPrices(_ context.Context, _ *request, _ none) (reply, error) {
	out := pricesShape{Prices: []priceShape{}}
	for _, p := range s.cfg.Models.Prices() {
		one := priceShape{Model: p.Model, Date: p.Date, ratesShape: ratesShape{p.Input, p.Output, p.CacheRead, p.CacheWrite}}
		if l := p.Long; l != nil {
			one.Long = &longRateShape{l.Above, ratesShape{l.Input, l.Output, l.CacheRead, l.CacheWrite}}
		}
		out.Prices = append(out.Prices, one)
	}
	return reply{body: out}, nil
}
