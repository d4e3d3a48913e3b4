package sequentialspin

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

func TestMain(m *testing.M) {
	zktest.Child("holder", lock.Hold)
	zktest.Main(m)
}

var lock = lockcheck.Over("step 2", New)

func init() { lock.NotHeld = ErrNotHeld }

// The first test to speak: when a line of lock.go is broken, the properties say
// what it was good for.
func TestProperties(t *testing.T) { lockcheck.AsTheTableSays(t, "2", lock) }

func TestLockIsOneCreateAndOneList(t *testing.T) {
	z := zktest.New(t)
	a := lock.Join(z, "A")
	a.Acquire().Release() // makes the directory
	mark := a.Tap.Mark()
	turn := a.Acquire()
	owner, _ := z.Owner(a.Path + "/lock-0000000001")
	assert.Equal(t, a.ID, owner, "the session that the holder's znode belongs to")
	turn.Release()
	assert.Empty(t, a.Queue(), "the queue after Unlock")
	assert.Equal(t, map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}, a.Requests(mark))
}

func FuzzNames(f *testing.F) { lockcheck.FuzzFirst(f, number, isFirst) }
