package doccheck

import (
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// doors are the folders of internal/, from the lowest to the highest.
var doors = []string{"server", "upkeep", "check", "show", "teach"}

// door is the place of a package among the doors; -1: it is none of them.
func door(importPath string) int {
	rest, inside := strings.CutPrefix(importPath, "zklock/internal/")
	if !inside {
		return -1
	}
	first, _, _ := strings.Cut(rest, "/")
	return slices.Index(doors, first)
}

// speech is the package that everybody may import: an error of the server's is told in the
// reader's language, too.
const speech = "zklock/internal/upkeep/words"

// What tests import is free: a test of the wire uses the tests' vocabulary, which stands
// above the wire.
func TestNoPackageImportsOneThatStandsAbove(t *testing.T) {
	t.Parallel()
	texts, err := Files(root, ".go")
	require.NoError(t, err)
	seen := map[int]bool{}
	for name, text := range texts {
		if strings.HasSuffix(name, "_test.go") || !strings.HasPrefix(name, "internal/") {
			continue
		}
		own := door("zklock/" + path.Dir(name))
		if !assert.GreaterOrEqual(t, own, 0, "%s stands in none of the folders %v", name, doors) {
			continue
		}
		seen[own] = true
		for _, imported := range imports(t, name, text) {
			assert.False(t, "zklock/"+path.Dir(name) == speech && door(imported) >= 0, "%s imports %s: everybody imports %[1]s", name, imported)
			if imported == speech {
				continue
			}
			assert.LessOrEqual(t, door(imported), own, "%s imports %s, which stands above it", name, imported)
		}
	}
	assert.Len(t, seen, len(doors), "folders with packages")
}

// Docker's client is large. So it is linked into one program, which is started when
// Docker is chosen, and into no test.
func TestOneProgramAloneKnowsDocker(t *testing.T) {
	t.Parallel()
	texts, err := Files(root, ".go")
	require.NoError(t, err)
	var who []string
	for name, text := range texts {
		for _, imported := range imports(t, name, text) {
			isContainers := strings.HasPrefix(imported, "github.com/testcontainers/")
			isDocker := strings.HasPrefix(imported, "github.com/moby/")
			if isContainers || isDocker {
				who = append(who, name)
			}
		}
	}
	slices.Sort(who)
	assert.Equal(t, []string{"internal/server/zkserver/container/main.go"}, slices.Compact(who))
}

// The folder of a step, copied into an empty module, is to build with the client alone.
func TestAStepImportsNothingOfOurs(t *testing.T) {
	t.Parallel()
	texts, err := Files(root, ".go")
	require.NoError(t, err)
	looked := 0
	for name, text := range texts {
		if !stepReadme.MatchString(path.Dir(name)+"/README.md") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		looked++
		for _, imported := range imports(t, name, text) {
			assert.False(t, strings.HasPrefix(imported, "zklock/"), "%s imports %s", name, imported)
		}
	}
	assert.GreaterOrEqual(t, looked, 12, "files of the steps")
}

// imports are the packages that a file imports.
func imports(t *testing.T, name, text string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	require.NoError(t, err)
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		require.NoError(t, err)
		all = append(all, imported)
	}
	return all
}
