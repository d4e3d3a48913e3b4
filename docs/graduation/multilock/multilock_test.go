package multilock

import (
	"testing"

	"zklock/internal/lockcheck"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestProperties(t *testing.T) {
	lockcheck.Holds(t, lockcheck.OverMultiLock(New, predecessorwatch.New), lockcheck.MultiLockProperties...)
}
