package exercise

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/steps"
	"zklock/internal/zktest"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
)

// What a learner is asked to write sees the mistake, and no right lock fails there. A test
// without a body sees nothing.
func TestALearnersOwnTestSeesTheMistake(t *testing.T) {
	plain := property.Over("step 1", plainnode.New)
	plain.Znode = true
	for name, lesson := range map[string]struct {
		right property.Subject
		test  func(a, b, c *Client)
	}{
		"1": {plain, func(a, b, _ *Client) {
			a.Locks()
			b.Waits()
			a.Unlocks()
			b.GetsIt()
		}},
		"2": {property.Over("step 2", sequentialspin.New), func(a, b, _ *Client) {
			a.Locks()
			b.Waits()
			a.Crashes()
			b.GetsIt()
		}},
		"3": {property.Over("step 3", childrenwatch.New), func(a, b, _ *Client) {
			a.Locks()
			b.Waits()
			a.Unlocks()
			b.GetsIt()
		}},
		"4": {property.Over("step 4", predecessorwatch.New), func(a, b, c *Client) {
			a.Locks()
			b.Waits()
			c.Waits()
			b.Crashes()
			c.StillWaits()
		}},
		"5": {steps.Step(5), func(a, b, _ *Client) {
			a.Locks()
			a.LocksAgain()
			b.Waits()
			a.Unlocks()
			b.StillWaits()
			a.Unlocks()
			b.GetsIt()
		}},
		"6": {steps.Step(6), func(a, b, c *Client) {
			a.Locks()
			b.WaitsToRead()
			c.Waits()
			a.Unlocks()
			b.GetsIt()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := zktest.Shared()
			require.NoError(t, err)
			asked := func(lock property.Subject, test func(a, b, c *Client)) property.Verdict {
				r := askOwn(t.Context(), server, lock, test)
				t.Log(lock.Name, r.Verdict, r.Evidence)
				return r.Verdict
			}
			assert.Equal(t, property.Yes, asked(lesson.right, lesson.test), "the step's own lock")
			assert.Equal(t, property.No, asked(mistakes[name].lock(), lesson.test), mistakes[name].key)
			assert.Equal(t, property.Yes, asked(mistakes[name].lock(), func(_, _, _ *Client) {}), "an empty test")
		})
	}
}
