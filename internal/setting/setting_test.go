package setting

import (
	"testing"
	"time"

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

func TestRead(t *testing.T) {
	read := func() (time.Duration, error) {
		return Read("TIME", time.Minute, "a time such as 10m", time.ParseDuration)
	}
	t.Setenv("TIME", "")
	usual, err := read()
	require.NoError(t, err)
	require.Equal(t, time.Minute, usual)
	t.Setenv("TIME", "90s")
	chosen, err := read()
	require.NoError(t, err)
	require.Equal(t, 90*time.Second, chosen)
	t.Setenv("TIME", "long")
	_, err = read()
	require.EqualError(t, err, "TIME=long: it has to be a time such as 10m")
}
