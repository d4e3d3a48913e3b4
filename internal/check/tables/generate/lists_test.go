package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheListsAreMadeFromTheTables(t *testing.T) {
	assert.NoError(t, generate("../../../..", true), "go generate ./... writes what differs")
}

func TestFill(t *testing.T) {
	root := t.TempDir()
	l := list{"page.md", "locks", "| new |\n"}
	page := filepath.Join(root, l.file)
	require.NoError(t, os.WriteFile(page, []byte("before\n"), 0o644))
	assert.ErrorContains(t, l.fill(root, false), "there are no two lines")

	begin, end := l.markers()
	require.NoError(t, os.WriteFile(page, []byte("before\n"+begin+"| old |\n"+end+"after\n"), 0o644))
	assert.ErrorContains(t, l.fill(root, true), "page.md: the list differs from the table of locks")
	require.NoError(t, l.fill(root, false))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, "before\n"+begin+"| new |\n"+end+"after\n", string(text))
	assert.NoError(t, l.fill(root, true), "it is as it should be")
}
