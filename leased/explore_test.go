package leased

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

// explored are the locks whose interleavings TestEveryOrder tries, and how many of two clients are readers.
var explored = []struct {
	property.Subject
	readers []int
}{
	{mutexes, []int{0}},
	{cohorts, []int{0}},
	{rwmutexes, []int{0, 1, 2}},
}

// Every interleaving of the requests of two clients, with a fault anywhere, is right.
func TestEveryOrder(t *testing.T) {
	const variable = "ZKLOCK_EXPLORE"
	if os.Getenv(variable) == "" {
		t.Skip(variable + "=1 plays them, for half an hour or more")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	for _, lock := range explored {
		for _, n := range lock.readers {
			t.Run(fmt.Sprintf("%s, %d of 2 clients read", lock.Name, n), func(t *testing.T) {
				z := zktest.New(t)
				settings := explore.Settings{Servers: z.Servers(), Root: z.Root, Clients: 2, Readers: n, Faults: 1,
					Switches: explore.Unbound, WakesOne: n == 0}
				players, err := explore.Start(4, settings, lock.Name, program)
				require.NoError(t, err)
				begun := time.Now()
				r, err := explore.Explore(t.Context(), players, func(explore.Result) {})
				require.NoError(t, err)
				require.NoError(t, explore.End(players))
				t.Logf("» %s, 2 clients, %d of them readers, a fault anywhere: %d orders, %d wrong, in %v",
					lock.Name, n, r.Orders, r.Wrong, time.Since(begun).Round(time.Second))
				for _, invariant := range r.Broken() {
					f := r.Findings[invariant]
					t.Errorf("%s: in %d orders. The shortest:\n%s", invariant, f.Orders, strings.Join(f.Shortest.Tell(), "\n"))
				}
			})
		}
	}
}
