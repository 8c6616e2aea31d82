package agent

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // to know their sizes
	_ "image/jpeg"
	_ "image/png"
	"slices"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Bounds of pictures. A provider that gets one beyond its own bounds refuses the whole conversation, again and again.
const (
	maxEdge    = 8000     // pixels, which Anthropic takes
	maxSight   = 20       // pictures in one request: with more of them Anthropic wants each one small
	sightSteps = 10       // so many are left out at once, so that what is sent before the newest stays the same for a while, for the provider's cache
	sightBytes = 12 << 20 // of all of them: in base64 half of the request that Anthropic takes. When it is reached, half of it stays
)

// Image is a picture.
type Image struct {
	MediaType string `json:"media_type"` // one of ImageTypes
	Data      []byte `json:"data"`
}

// ImageTypes are the pictures that every provider takes.
var ImageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// imageFormats are ImageTypes as package image names them. It does not know WebP.
var imageFormats = map[string]string{"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif"}

// Problem says why a picture cannot be sent, a clause; "" when it can.
func (i Image) Problem() string {
	switch {
	case !slices.Contains(ImageTypes, i.MediaType):
		return "it is no PNG, JPEG, GIF or WebP"
	case len(i.Data) == 0:
		return "it is empty"
	case len(i.Data) > maxImage:
		return "it is too large"
	}
	if i.MediaType == "image/webp" {
		if len(i.Data) < 16 || string(i.Data[:4]) != "RIFF" || string(i.Data[8:12]) != "WEBP" {
			return "it is no WebP"
		}
		return ""
	}
	size, format, err := image.DecodeConfig(bytes.NewReader(i.Data))
	switch {
	case err != nil || imageFormats[format] != i.MediaType:
		return "it is damaged, or not of the type that it is said to be"
	case max(size.Width, size.Height) > maxEdge:
		return fmt.Sprintf("it has %d × %d pixels; at most %d each way can be looked at", size.Width, size.Height, maxEdge)
	}
	return ""
}

// viewer makes parts what a model gets of them.
type viewer struct {
	blind bool // the model cannot see
	skip  int  // how many more pictures are left out, because there are too many after them
}

// sight gives the viewer of messages, the first of which that are not sent whole left out.
func sight(messages []Message, blind bool) *viewer {
	var all []int
	for _, m := range messages {
		all = append(all, pictures(m.Parts)...)
	}
	return &viewer{blind, skipped(all)}
}

// skipped gives how many of the oldest pictures are left out, by the bytes of all. More of them at the end change that seldom.
func skipped(sizes []int) (skip int) {
	sum := 0
	for i, size := range sizes {
		sum += size
		if i+1-skip > maxSight {
			for range sightSteps {
				sum, skip = sum-sizes[skip], skip+1
			}
		}
		if sum > sightBytes {
			for sum > sightBytes/2 && skip < i {
				sum, skip = sum-sizes[skip], skip+1
			}
		}
	}
	return skip
}

// pictures gives the bytes of each.
func pictures(parts []Part) (sizes []int) {
	for _, p := range parts {
		switch p.Kind {
		case PartImage:
			sizes = append(sizes, len(p.Image.Data))
		case PartResult:
			for _, i := range p.Result.Images {
				sizes = append(sizes, len(i.Data))
			}
		}
	}
	return sizes
}

func (v *viewer) parts(parts []Part, old bool) []Part {
	view := make([]Part, len(parts))
	for i, p := range parts {
		switch {
		case p.Kind == PartResult && (old || len(p.Result.Images) > 0):
			p.Result = v.result(*p.Result, old)
		case p.Kind == PartImage:
			if why := v.hidden(*p.Image, old); why != "" {
				p = textPart(why)
			}
		}
		view[i] = p
	}
	return view
}

func (v *viewer) result(r ToolResult, old bool) *ToolResult {
	if old {
		r.Text = Shorten(r.Text, oldOutput)
	}
	var shown []Image
	for _, image := range r.Images {
		if why := v.hidden(image, old); why != "" {
			r.Text = joinLines(r.Text, why)
		} else {
			shown = append(shown, image)
		}
	}
	r.Images = shown
	return &r
}

// hidden gives the line in place of a picture that is not sent; "" for one that is.
func (v *viewer) hidden(i Image, old bool) string {
	why := ""
	switch {
	case old:
		why = "left out, because it is from long ago"
	case v.skip > 0:
		v.skip--
		why = "left out, because there are many after it"
	case v.blind:
		why = "you cannot see pictures"
	default:
		return ""
	}
	return fmt.Sprintf("(A picture, %s, %s: %s.)", i.MediaType, text.Size(int64(len(i.Data))), why)
}

// refusedPictures reports whether a request was refused, maybe because of its pictures: for the rest of the turn none are sent.
func (r *run) refusedPictures(err error) bool {
	if r.NoImages || CodeOf(err) != Rejected || !slices.ContainsFunc(r.request().Messages, func(m Message) bool { return len(pictures(m.Parts)) > 0 }) {
		return false
	}
	r.NoImages = true
	r.notice("%s Trying again without the pictures.", fault.Message(err))
	return true
}
