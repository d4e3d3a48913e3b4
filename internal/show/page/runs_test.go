package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/upkeep/words"
)

// What the chapters of the book play is what is measured: each phase has the same name
// and comes to the same, with its counts.
func TestTheRunsOfTheBook(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "figures", "runs.json"))
	require.NoError(t, err, "make figures records it")
	measured, err := recorded(t).Runs()
	require.NoError(t, err)
	type phase struct{ Title, Sum words.Text }
	tells := func(text []byte) (told []phase) {
		var runs struct {
			Stories []struct{ Phases []phase }
		}
		require.NoError(t, json.Unmarshal(text, &runs))
		require.Len(t, runs.Stories, len(inChapters))
		for _, story := range runs.Stories {
			told = append(told, story.Phases...)
		}
		return told
	}
	assert.Equal(t, tells(measured), tells(kept), "docs/figures/runs.json (make figures records it again)")
}
