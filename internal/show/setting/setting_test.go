package setting

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]int{"": 50, "1": 1, "3": 3, "03": 3, "150": 150} {
		t.Setenv("WAITERS", text)
		n, err := Number("WAITERS", 50, 1, 150)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"0", "-3", "151", "ten", "100,000", "1.5"} {
		t.Setenv("WAITERS", text)
		_, err := Number("WAITERS", 50, 1, 150)
		require.EqualError(t, err, "WAITERS="+text+": it has to be a number from 1 to 150")
	}
}
