package wire

import (
	"net/url"
	"strconv"
)

// Values gives the parameters of FilesWrite.
func (f *FilePut) Values() url.Values {
	return url.Values{"path": {f.Path}, "upload": {f.Upload}, "offset": {strconv.FormatInt(f.Offset, 10)},
		"size": {strconv.FormatInt(f.Size, 10)}, "last": {strconv.FormatBool(f.Last)}, "if_match": {f.IfMatch},
		"if_none": {strconv.FormatBool(f.IfNone)}, "mode": {strconv.FormatUint(uint64(f.Mode), 8)},
		"parents": {strconv.FormatBool(f.Parents)}}
}

// PutOf reads the parameters of FilesWrite and checks them.
func PutOf(v url.Values) (FilePut, error) {
	f := FilePut{Path: v.Get("path"), Upload: v.Get("upload"), Last: v.Get("last") == "true", IfMatch: v.Get("if_match"),
		IfNone: v.Get("if_none") == "true", Parents: v.Get("parents") == "true"}
	var err error
	if f.Offset, err = strconv.ParseInt(v.Get("offset"), 10, 64); err != nil {
		return f, badField("offset")
	}
	if f.Size, err = strconv.ParseInt(v.Get("size"), 10, 64); err != nil {
		return f, badField("size")
	}
	mode, err := strconv.ParseUint(v.Get("mode"), 8, 32)
	if err != nil {
		return f, badField("mode")
	}
	f.Mode = uint32(mode)
	return f, f.Check()
}

// Values gives the parameters of FilesSearch.
func (s *Search) Values() url.Values {
	return url.Values{"path": {s.Path}, "query": {s.Query}, "in": {string(s.In)}, "case": {strconv.FormatBool(s.Case)},
		"regex": {strconv.FormatBool(s.Regex)}, "limit": {strconv.Itoa(s.Limit)}}
}

// SearchOf reads the parameters of FilesSearch and checks them.
func SearchOf(v url.Values) (Search, error) {
	s := Search{Path: v.Get("path"), Query: v.Get("query"), In: SearchIn(v.Get("in")), Case: v.Get("case") == "true",
		Regex: v.Get("regex") == "true"}
	var err error
	if s.Limit, err = strconv.Atoi(v.Get("limit")); err != nil {
		return s, badField("limit")
	}
	return s, s.Check()
}
