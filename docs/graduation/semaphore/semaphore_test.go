package semaphore

import (
	"testing"

	"zklock/internal/lockcheck"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestProperties(t *testing.T) {
	lockcheck.Holds(t, lockcheck.OverSemaphore(New), lockcheck.SemaphoreProperties...)
}
