package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Times are kept as microseconds since 1970, as integers: they sort, and they cannot be half right. latest is the end
// of the year 9999, beyond which JSON cannot write them.
var latest = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// stamp is a time on its way into a column that must have one. A time outside of (1970, 9999] is an error.
type stamp time.Time

// Value implements driver.Valuer.
func (s stamp) Value() (driver.Value, error) {
	us := time.Time(s).UnixMicro()
	if us <= 0 || us >= latest {
		return nil, fmt.Errorf("time %s cannot be kept", time.Time(s))
	}
	return us, nil
}

// stampOrNull is for a column where NULL stands for the zero time.
func stampOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

// into reads a time from a column. Anything else is an error, never a zero time.
type into struct {
	t    *time.Time
	null bool // NULL is allowed and stands for the zero time
}

// Scan implements sql.Scanner.
func (i into) Scan(v any) error {
	if v == nil && i.null {
		*i.t = time.Time{}
		return nil
	}
	us, ok := v.(int64)
	if !ok || us <= 0 || us >= latest {
		return fmt.Errorf("%v is not a time", v)
	}
	*i.t = time.UnixMicro(us).UTC()
	return nil
}
