package childrenwatch

import (
	"testing"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var lock = lockcheck.Over("step 3", New)

func init() { lock.NotHeld = ErrNotHeld }

// The only test that is not parallel, and so the first to speak: when a line of
// lock.go is broken, the properties say what it was good for.
func TestProperties(t *testing.T) { lockcheck.AsTheTableSays(t, "3", lock) }

func FuzzNames(f *testing.F) { lockcheck.FuzzFirst(f, number, isFirst) }
