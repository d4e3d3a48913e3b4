package leased

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page of operations says for each of its alarms what to do.
func TestEachAlarmSaysWhatToDo(t *testing.T) {
	page, err := os.ReadFile("operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| alarm | what to do |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	alerts := 0
	for line := range strings.Lines(string(page)) {
		if _, alert, isAlert := strings.Cut(line, "- alert: "); isAlert {
			alerts++
			require.Contains(t, table, strings.Fields(alert)[0])
		}
	}
	require.Positive(t, alerts)
}
