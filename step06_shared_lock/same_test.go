package sharedlock

import (
	"go/ast"
	"go/parser"
	"go/printer"
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
	for _, name := range []string{"session.go", "lease.go", "client.go", "attack_test.go"} {
		theirs := strings.Replace(text(t, step5+name), "package reentrant\n", "package sharedlock\n", 1)
		require.Equal(t, theirs, text(t, name), "%s and step 5's", name)
	}
}

// The lesson of this step is what its lock has that step 5's has not: so it must be
// little. The code of all other functions is step 5's, whose tests hold it: how they queue
// up, look for a lost znode, wait, give up, and leave.
func TestTheseFunctionsDifferFromStep5s(t *testing.T) {
	kinds := strings.NewReplacer( // what a kind changes in all the others
		"*RWLock", "*Lock",
		"k kind, ", "",
		", k kind", "",
		"k, p)", "p)",
		"kind: k, ", "",
		", k)", ")",
		", mine.kind)", ")",
		`-%s", l.dir, rand.Uint64(), k)`, `-lock-", l.dir, rand.Uint64())`,
	)
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
		"lock.go": {
			"Lock",
			"New",
			"RLock",
			"RUnlock",
			"TryLock",
			"TryRLock",
			"Unlock",
			"lock",
			"number",
			"predecessor",
			"tryLock",
			"unlock",
		},
		"hold.go": {"allowUnlockAgain", "begin", "enter", "entries", "exit"},
	}, differ)
}

// functions cuts a file into its functions, without their comments.
func functions(t *testing.T, path string) map[string]string {
	t.Helper()
	files, texts := token.NewFileSet(), map[string]string{}
	withoutComments := parser.SkipObjectResolution
	f, err := parser.ParseFile(files, path, nil, withoutComments)
	require.NoError(t, err)
	for _, declared := range f.Decls {
		if function, ok := declared.(*ast.FuncDecl); ok {
			var text strings.Builder
			require.NoError(t, printer.Fprint(&text, files, function))
			texts[function.Name.Name] = text.String()
		}
	}
	return texts
}
