package archive

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dataOf gives the parts of an open file that are no holes, and whether it has holes.
func dataOf(fd int, st *unix.Stat_t) (data []extent, sparse bool) {
	all := []extent{{0, st.Size}}
	if st.Blocks*512 >= st.Size {
		return all, false
	}
	for at := int64(0); at < st.Size; {
		from, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break // a hole to the end
		}
		if err != nil {
			return all, false
		}
		to, err := unix.Seek(fd, from, unix.SEEK_HOLE)
		if err != nil || to <= from {
			return all, false
		}
		if len(data) == maxExtents-1 {
			to = st.Size
		}
		from, to = min(from, st.Size), min(to, st.Size)
		data = append(data, extent{from, to - from})
		at = to
	}
	return data, len(data) != 1 || data[0] != all[0]
}

func formatExtents(data []extent) string {
	var b []byte
	for i, e := range data {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, e.offset, 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, e.length, 10)
	}
	return string(b)
}

// parseExtents reads what formatExtents has written of a file of a size. They follow each other.
func parseExtents(text string, size int64) (data []extent, err error) {
	end := int64(0)
	for field := range strings.FieldsSeq(text) {
		from, length, _ := strings.Cut(field, ":")
		e := extent{}
		if e.offset, err = strconv.ParseInt(from, 10, 64); err != nil {
			return nil, ErrHoles
		}
		if e.length, err = strconv.ParseInt(length, 10, 64); err != nil || e.offset < end || e.length < 0 || e.length > size-e.offset {
			return nil, ErrHoles
		}
		end = e.offset + e.length
		if data = append(data, e); len(data) > maxExtents {
			return nil, ErrHoles
		}
	}
	return data, nil
}
