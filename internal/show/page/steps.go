package page

import (
	"slices"
	"strings"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/steps"
)

// A Step is a lock that the tour shows.
type Step struct {
	Key     string            `json:"key"`  // "1", "2", …
	Title   string            `json:"-"`    // in one short word
	Name    string            `json:"name"` // in a few words
	Lesson  string            `json:"lesson"`
	Subject lockcheck.Subject `json:"-"`
}

// among tells whether it is one of the steps whose keys are the letters of keys.
func (s Step) among(keys string) bool { return len(s.Key) == 1 && strings.Contains(keys, s.Key) }

// Steps are all steps, in order.
var Steps = []Step{
	{"1", "plain", "a plain znode", "One znode is the lock. Every try of a waiter is a write; a crash locks all out.",
		steps.All[0]},
	{"2", "spin", "a queue, and asking", "Numbered znodes stand in line, and die with their session; all keep asking.",
		steps.All[1]},
	{"3", "herd", "watch the directory", "Nobody asks, the server tells: but it tells everyone, and they all look.",
		steps.All[2]},
	{"4", "chain", "watch the one before", "Each watches the one before it: a release wakes one, however many wait.",
		steps.All[3]},
	{"5", "safe", "a lock to rely on", "Step 4 made safe: lost replies, re-entry, notice of a loss, fencing tokens.",
		steps.All[4]},
	{"6", "shared", "a lock to share", "Readers share it, a writer is alone; each still waits for one other only.",
		steps.All[5]},
}

// Watched is step 1's lock whose waiters do not ask: it stands beside the step.
var Watched = Step{"1w", "watched", "a plain znode, watched", "Step 1's NewWatched: silent, and then all who wait are told, and each of them writes.",
	steps.Watched}

// ClientLock is the Go client's own lock: it stands beside the steps in the
// scoreboard and the matrix, and has no stories.
var ClientLock = Step{"", "client", "", "The Go client's own lock, for comparison: it waits as step 4 does.",
	steps.Client}

// Locks are all of them, in the order in which they are shown.
var Locks = append(slices.Insert(slices.Clone(Steps), 1, Watched), ClientLock)
