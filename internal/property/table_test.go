package property

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/tables"
)

func TestTheTableIsWhole(t *testing.T) {
	marks := []string{string(Yes), string(No), string(Void), "."}
	var names []string
	for _, row := range Table {
		name := row.Property.Name.EN
		assert.NotContains(t, names, name, "a property has one row")
		names = append(names, name)
		columns := strings.Fields(row.Marks)
		assert.Len(t, columns, len(tables.Locks), "the marks of %q", name)
		assert.Subset(t, marks, columns, "the marks of %q", name)
		for key := range row.Remarks {
			assert.NotEqual(t, Verdict("."), row.Of(key), "a remark on a mark of %q", name)
		}
	}
}

// What the table of mistakes says that a mistake breaks is a property that is shown.
func TestWhatAMistakeBreaksIsAProperty(t *testing.T) {
	known := []string{"", tables.Nothing}
	for _, p := range Properties {
		known = append(known, p.Name.EN)
	}
	for i, m := range tables.Mistakes {
		assert.Equal(t, i+1, m.Number, "%s stands in its place", m.Key())
		assert.Contains(t, known, m.Suffers, m.Key())
		assert.Contains(t, tables.Harms, m.Harm, m.Key())
	}
}

// What make play and make explore start as a client of a mistake is its test.
func TestEachMistakeActs(t *testing.T) {
	for _, m := range tables.Mistakes {
		file, err := os.ReadFile(filepath.Join("..", "..", "..", m.File()))
		require.NoError(t, err)
		_, test, _ := strings.Cut(string(file), "\nfunc "+m.Test+"(")
		test, _, _ = strings.Cut(test, "\n}\n")
		assert.Contains(t, test, ".Acts()\n", "%s in %s", m.Test, m.File())
	}
}
