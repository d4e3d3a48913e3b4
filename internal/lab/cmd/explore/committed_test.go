package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/lab/explorer"
)

// What the book's page plays is what the locks do: each committed game, played anew, is the same.
func TestTheCommittedGamesAreAsPlayed(t *testing.T) {
	if !isWide {
		t.Skip("in .ci/night")
	}
	s := explorer.AsCommitted
	s.Points = true
	for _, key := range explorer.Committed {
		r, err := explored(t, choose(t, key), s)
		require.NoError(t, err)
		played, err := explorer.Grow(r, s)
		require.NoError(t, err)
		committed, err := explorer.Recorded(key)
		require.NoError(t, err)
		isSame := assert.ObjectsAreEqual(committed, played)
		assert.True(t, isSame, "the game of %s has changed: make explore RECORD=1 records them anew", key)
	}
}

// The explorer plays only one order of two reads. The game has both: it is the same game if both are played.
func TestTheGameHasBothOrdersOfTwoReads(t *testing.T) {
	t.Parallel()
	grown := func(isFull bool) *explorer.Game {
		s := explore.Settings{Clients: 2, Switches: explore.Unbound, Points: true, Full: isFull}
		r, err := explored(t, choose(t, "4"), s)
		require.NoError(t, err)
		g, err := explorer.Grow(r, s)
		require.NoError(t, err)
		return g
	}
	full, reduced := grown(true), grown(false)
	assert.Equal(t, 40, full.Orders, "interleavings of step 4 without a fault")
	assert.Less(t, reduced.Orders, full.Orders)
	full.Orders = reduced.Orders
	assert.Equal(t, full, reduced)
}
