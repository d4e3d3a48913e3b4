package explorer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/lab/locks"
)

// A published mistake begins with what its base survives, and with what needs no fault. If there is
// no such thing, the page says what can show the mistake.
func TestTheGoalsOfAMistake(t *testing.T) {
	t.Parallel()
	four, err := Recorded("4")
	require.NoError(t, err)
	made := func(key string, kinds ...explore.Kind) Level {
		l, err := locks.Choose(key)
		require.NoError(t, err)
		found := map[explore.Kind]explore.Finding{}
		for _, k := range kinds {
			found[k] = explore.Finding{}
		}
		return level(l, found, 1, baseOf(l), four.kinds())
	}
	expires := explore.Kind{Invariant: explore.TwoInside, Faults: "expire"}
	waits := explore.Kind{Invariant: explore.WaitsOn}
	waitsAfterCrash := explore.Kind{Invariant: explore.WaitsOn, Faults: "crash"}

	w11 := made("W11", expires, waits, waitsAfterCrash)
	assert.Equal(t, []Goal{{Kind: explore.WaitsOn, Faults: []string{""}}, {Kind: explore.TwoInside}}, w11.Goals)
	assert.Empty(t, w11.Note.EN)

	w8 := made("W8", expires)
	assert.Equal(t, []Goal{{Kind: explore.TwoInside}}, w8.Goals)
	assert.Equal(t, "Two clients and one fault cannot show this mistake: "+
		"what goes wrong here also goes wrong in step 4. Three can: make explore STEP=W8 CLIENTS=3", w8.Note.EN)
	assert.NotContains(t, made("W9", expires).Note.EN, "CLIENTS=3")
}
