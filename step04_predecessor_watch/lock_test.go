package predecessorwatch

import (
	"fmt"
	"testing"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var lock = lockcheck.Over("step 4", New)

func init() { lock.NotHeld = ErrNotHeld }

// The only test that is not parallel, and so the first to speak: when a line of
// lock.go is broken, the properties say what it was good for.
func TestProperties(t *testing.T) { lockcheck.AsTheTableSays(t, "4", lock) }

func FuzzNames(f *testing.F) {
	lockcheck.FuzzFirst(f, number, func(names []string, mine string) (bool, error) {
		before, err := predecessor(names, mine)
		if err != nil {
			return before != "", err // beside an error, nothing is named
		}
		own, _ := number(mine)
		if !lockcheck.IsBefore(number, before, names, own) {
			err = fmt.Errorf("what stands before it is not %q", before)
		}
		return before == "", err
	})
}
