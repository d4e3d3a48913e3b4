package zktest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABusyMachineIsGivenMoreTime(t *testing.T) {
	for _, c := range []struct {
		load  float64
		cores int
		want  float64
	}{
		{0, 2, 1},
		{4, 2, 1},
		{6, 2, 1.5},
		{6, 8, 1},
		{100, 2, 8},
	} {
		require.Equal(t, c.want, slownessAt(c.load, c.cores), "load %v, %d cores", c.load, c.cores)
	}
	require.GreaterOrEqual(t, slowness, 1.0)
}
