package property

import (
	"testing"

	"zklock/internal/check/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestTheClientsOwnLock(t *testing.T) { AsTheTableSays(t, "zk", Over("zk.Lock", ClientLock)) }
