package gateway

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/text"
)

const (
	maxPrices = 1 << 20     // bytes of a file of prices
	maxWindow = 100_000_000 // tokens
)

//go:embed prices.json
var builtInText []byte

// builtIn are list prices of well-known models.
var builtIn = func() []Price {
	list, err := parsePrices(builtInText)
	if err != nil {
		panic(err) // a mistake in this program, which stops every test of it
	}
	return list
}()

// Prices gives all prices: those of the file first, then the built-in ones.
func (s *Service) Prices() []Price {
	return slices.DeleteFunc(slices.Clone(s.table().prices), func(p Price) bool { return p.unpriced })
}

// Window says how many tokens a model takes; 0 when that is not known.
func (s *Service) Window(model string) int {
	p, _ := s.table().entry(model, func(p Price) bool { return p.Window > 0 })
	return p.Window
}

// Price gives what tokens of a model cost, in millionths of a dollar, and whether its price is known.
func (s *Service) Price(model string, used Tokens) (cost int64, known bool) {
	t := s.table()
	p, ok := t.priceOf(model)
	if !ok {
		return 0, false
	}
	if l := p.Long; l != nil && used.Input+used.CacheRead+used.CacheWrite > l.Above {
		p.Input, p.Output, p.CacheRead, p.CacheWrite = l.Input, l.Output, l.CacheRead, l.CacheWrite
	}
	sum := float64(used.Input)*p.Input + float64(used.Output)*p.Output + float64(used.CacheRead)*p.CacheRead + float64(used.CacheWrite)*p.CacheWrite
	return int64(math.Round(min(max(sum, 0), maxCost))), true
}

// dated is the end of a model's name that says when it was published.
var dated = regexp.MustCompile(`-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$`)

func (t *table) priceOf(model string) (Price, bool) {
	return t.entry(model, func(p Price) bool { return !p.unpriced })
}

// entry finds the entry of a model among those that say something, also without the date at the end of its name and the folder in front, as
// brokers name models. The file's entries come before the built-in ones.
func (t *table) entry(model string, says func(Price) bool) (Price, bool) {
	bare := model[strings.LastIndexByte(model, '/')+1:]
	names := []string{model, dated.ReplaceAllString(model, ""), bare, dated.ReplaceAllString(bare, "")}
	for _, list := range [][]Price{t.prices[:t.ownPrices], t.prices[t.ownPrices:]} {
		if p, ok := bestPrice(list, names, says); ok {
			return p, true
		}
	}
	return Price{}, false
}

// bestPrice gives the entry with the longest name that fits one of the names.
func bestPrice(list []Price, names []string, says func(Price) bool) (best Price, found bool) {
	most := -1
	for _, p := range list {
		begin, open := strings.CutSuffix(p.Model, "*")
		length := 2 * len(begin)
		if !open {
			length++ // and nothing behind it
		}
		fits := func(name string) bool { return name == p.Model || open && strings.HasPrefix(name, begin) }
		if length > most && says(p) && slices.ContainsFunc(names, fits) {
			best, found, most = p, true, length
		}
	}
	return best, found
}

// listed is an entry of a list, where a price of 0 is another thing than none.
type listed struct {
	Price
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
}

// price gives the entry. One with a window and no price says the window alone; without either everything is free.
func (l listed) price() Price {
	p := l.Price
	for to, from := range map[*float64]*float64{&p.Input: l.Input, &p.Output: l.Output, &p.CacheRead: l.CacheRead, &p.CacheWrite: l.CacheWrite} {
		if from != nil {
			*to = *from
		}
	}
	p.unpriced = p.Window > 0 && p.Long == nil && l.Input == nil && l.Output == nil && l.CacheRead == nil && l.CacheWrite == nil
	return p
}

// parsePrices reads a list of prices.
func parsePrices(from []byte) (list []Price, err error) {
	d := json.NewDecoder(bytes.NewReader(from))
	d.DisallowUnknownFields()
	var entries []listed
	if err := d.Decode(&entries); err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the list")
	}
	seen := map[string]bool{}
	for i, l := range entries {
		p := l.price()
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("price %d: %w", i+1, err)
		}
		if seen[p.Model] {
			return nil, fmt.Errorf("price %d: %q is there twice", i+1, p.Model)
		}
		seen[p.Model] = true
		list = append(list, p)
	}
	return list, nil
}

func (p Price) check() error {
	const most = 1_000_000 // dollars for a million tokens
	if p.Model == "" || len(p.Model) > maxModel || text.Unprintable(p.Model) {
		return fmt.Errorf("%q is no name of a model", text.OneLine(p.Model, maxModel))
	}
	all := []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite}
	if l := p.Long; l != nil {
		all = append(all, l.Input, l.Output, l.CacheRead, l.CacheWrite)
	}
	for _, n := range all {
		if n < 0 || n > most {
			return fmt.Errorf("%q: %v is not between 0 and %d dollars", p.Model, n, most)
		}
	}
	if p.Window < 0 || p.Window > maxWindow {
		return fmt.Errorf("%q: a window of %d tokens is not between 1 and %d", p.Model, p.Window, maxWindow)
	}
	if _, err := time.Parse(time.DateOnly, p.Date); p.Date != "" && err != nil {
		return fmt.Errorf("%q: the date %q is not written like 2026-05-31", p.Model, text.OneLine(p.Date, maxModel))
	}
	return nil
}

// priceFile is the file of prices, as it was last read.
type priceFile struct {
	path    string
	log     *slog.Logger
	changed time.Time
	size    int64
	list    []Price
}

// read gives the prices of the file, and reads it again when it has changed. One that cannot be used is told in the log, and changes
// nothing.
func (f *priceFile) read() []Price {
	if f.path == "" {
		return nil
	}
	st, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.changed, f.size, f.list = time.Time{}, 0, nil
		return nil
	}
	if err == nil && st.ModTime().Equal(f.changed) && st.Size() == f.size {
		return f.list
	}
	var list []Price
	if err == nil {
		f.changed, f.size = st.ModTime(), st.Size()
		list, err = readPrices(f.path)
	}
	if err != nil {
		f.log.Error("the file with prices of models cannot be used; the prices before stay", "file", f.path, "error", err)
		return f.list
	}
	f.list = list
	return list
}

func readPrices(path string) ([]Price, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	whole, err := io.ReadAll(io.LimitReader(f, maxPrices+1))
	if err == nil && len(whole) > maxPrices {
		err = fmt.Errorf("it has more than %d bytes", maxPrices)
	}
	if err != nil {
		return nil, err
	}
	return parsePrices(whole)
}

// PriceFile is the path of the file with prices that take precedence; "" when there is none to be.
func (s *Service) PriceFile() string { return s.prices.path }
