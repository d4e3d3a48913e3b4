//go:build !linux

package docs

import (
	"testing"

	"zklock/internal/server/zkserver"
)

// leaderThatDoesNotAsk is played on Linux, where one thread can be stopped.
func leaderThatDoesNotAsk(*testing.T, *zkserver.Ensemble) {}
