package sharedlock

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const step5 = "../step05_reentrant/"

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// The session is step 5's, and so are its tests.
func TestTheSessionIsStep5s(t *testing.T) {
	for _, name := range []string{"session.go", "lease.go", "handshake.go"} {
		theirs := strings.Replace(text(t, step5+name), "package reentrant\n", "package sharedlock\n", 1)
		require.Equal(t, theirs, text(t, name), "%s and step 5's", name)
	}
}

// What a reader of these files has to get through, comments included.
func TestTheFilesAreShort(t *testing.T) {
	for _, c := range []struct {
		most  int
		files string
	}{
		{300, "lock.go"},
		{120, "hold.go"},
		{330, "session.go lease.go handshake.go"},
		{300, step5 + "lock.go"},
		{120, step5 + "hold.go"},
		{330, step5 + "session.go " + step5 + "lease.go " + step5 + "handshake.go"},
		{160, step5 + "cohort.go"},
	} {
		lines := 0
		for _, path := range strings.Fields(c.files) {
			lines += strings.Count(text(t, path), "\n")
		}
		require.LessOrEqual(t, lines, c.most, "lines of %s", c.files)
	}
}

// The lesson of this step is what its lock has that step 5's has not: so it must be
// little. All other functions are step 5's, whose tests hold them: how they queue up,
// look for a lost znode, wait, give up, and leave.
func TestTheseFunctionsDifferFromStep5s(t *testing.T) {
	kinds := strings.NewReplacer("*RWLock", "*Lock", // and what else a kind changes in one place
		`-%s", l.dir, rand.Uint64(), l.kind)`, `-lock-", l.dir, rand.Uint64())`,
		"released(l.kind, ", "released(")
	differ := map[string][]string{}
	for _, name := range []string{"lock.go", "hold.go"} {
		theirs := functions(t, step5+name)
		for function, text := range functions(t, name) {
			if kinds.Replace(text) != theirs[function] {
				differ[name] = append(differ[name], function)
			}
		}
		slices.Sort(differ[name])
	}
	require.Equal(t, map[string][]string{
		"lock.go": {"New", "RLock", "RUnlock", "TryRLock", "number", "predecessor"},
		"hold.go": {"again", "begin", "exit", "released"},
	}, differ)
}

// functions cuts a file into its functions.
func functions(t *testing.T, path string) map[string]string {
	t.Helper()
	source, texts := text(t, path), map[string]string{}
	f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, declared := range f.Decls {
		if function, ok := declared.(*ast.FuncDecl); ok {
			texts[function.Name.Name] = source[function.Pos()-f.FileStart : function.End()-f.FileStart]
		}
	}
	return texts
}
