package sandbox

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// maxLabel bounds a label, in characters: what fits a row without wrapping twice.
const maxLabel = 60

// CheckLabel reports what is wrong with the free text beside a name. Empty is fine; one of spaces alone is stored as empty.
func CheckLabel(label string) error {
	if !utf8.ValidString(label) {
		return fault.Field("label", "The label is not valid UTF-8 text.")
	}
	if utf8.RuneCountInString(label) > maxLabel {
		return fault.Field("label", "The label is longer than %d characters. Shorten it.", maxLabel)
	}
	if text.Unprintable(label) {
		return fault.Field("label", "The label has a character that cannot be shown (a line break, a control or a direction mark). Remove it.")
	}
	return nil
}

// autoName makes a name that reads well, such as "calm-otter"; after some tries (attempt counts from 0) one that is
// surely free, such as "calm-otter-4821".
func autoName(attempt int) string {
	name := adjectives[rand.IntN(len(adjectives))] + "-" + nouns[rand.IntN(len(nouns))]
	if attempt < 3 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, rand.IntN(9000)+1000)
}

var adjectives = strings.Fields(`agile amber bold brave bright brisk calm clever copper coral cosmic crisp curious dapper
	deft eager early easy fair fleet fluent fond frank fresh gentle glad golden grand green happy hardy honest humble ideal
	indigo ivory jolly keen kind lively loyal lucid lucky lunar mellow merry mild mint misty modern modest neat nimble noble
	novel olive opal patient pearl placid polar proud quick quiet rapid ready robust rosy royal ruby sage scarlet serene sharp
	silent silver simple smooth snowy solar solid spry stable steady still sunny swift tidy tranquil trusty upbeat velvet
	vivid warm wise witty zesty`)

var nouns = strings.Fields(`acorn anchor atlas aurora badger bamboo beacon birch bison breeze brook canyon cedar cherry
	cliff clover comet coral cove crane creek cricket dawn delta dolphin dove dune eagle ember falcon fern finch fjord forest
	fox gecko glacier grove gull harbor hare hawk hazel heron hill ibis iris island jasmine jay juniper kestrel kite koala
	lagoon lake lark laurel lemur lily lotus lynx maple marlin meadow mesa moose moss newt oak ocean orchid osprey otter owl
	panda pebble pelican pine planet plover pond poppy prairie puffin quail quartz rain raven reef ridge river robin salmon
	sparrow spruce star stone stork summit swan thicket tiger trout tulip valley violet walnut willow wren yak zebra`)
