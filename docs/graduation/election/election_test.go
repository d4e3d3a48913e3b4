package election

import (
	"testing"

	"zklock/internal/lockcheck"
	"zklock/internal/steps"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestProperties(t *testing.T) {
	lockcheck.Holds(t, lockcheck.OverElection(steps.OpenReentrant, New), lockcheck.ElectionProperties...)
}
