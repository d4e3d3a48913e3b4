package leased

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README has a row for each reason, with the three forms in which one meets it: the text in errors and in the log,
// the constant, and the label of a metric.
func TestTheREADMEHasEachFormOfEachReason(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for name, lost := range map[string]*LostError{
		"ReasonLeaseOver": errUnanswered,
		"ReasonExpired":   errExpired,
		"ReasonClosed":    lostClosed(byClose),
		"ReasonDeleted":   errZnodeDeleted,
	} {
		begins, _, _ := strings.Cut(lost.detail, ":")
		require.Contains(t, string(text), "| `"+begins+"` | `"+name+"`, `"+string(lost.Reason)+"` |")
	}
}

// The page of operations says where to look for each reason that the Warn "locks were lost" can have.
func TestThePageOfOperationsHasEachReasonOfTheWarn(t *testing.T) {
	text, err := os.ReadFile("operations.md")
	require.NoError(t, err)
	for _, lost := range []*LostError{errUnanswered, errExpired, lostClosed(byClose)} {
		begins, _, _ := strings.Cut(lost.detail, ":")
		require.Contains(t, string(text), "| `"+begins+"` (`"+string(lost.Reason)+"`) | ")
	}
}
