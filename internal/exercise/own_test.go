package exercise

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
)

// ownTests are what a learner is asked to write in TestMine, by the name of the exercise.
var ownTests = map[string]func(a, b, c *Client){
	"1": func(a, b, _ *Client) {
		a.Locks()
		b.Waits()
		a.Unlocks()
		b.GetsIt()
	},
	"2": func(a, b, _ *Client) {
		a.Locks()
		b.Waits()
		a.Crashes()
		b.GetsIt()
	},
	"3": func(a, b, c *Client) {
		a.Locks()
		b.Waits()
		c.Waits() // notifies b
		a.Unlocks()
		b.GetsIt()
	},
	"4": func(a, b, c *Client) {
		a.Locks()
		b.Waits()
		c.Waits()
		b.Crashes()
		c.StillWaits()
	},
	"5": func(a, b, _ *Client) {
		a.Locks()
		a.LocksAgain()
		b.Waits()
		a.Unlocks()
		b.StillWaits()
		a.Unlocks()
		b.GetsIt()
	},
	"6": func(a, b, c *Client) {
		a.Locks()
		b.WaitsToRead()
		c.Waits()
		a.Unlocks()
		b.GetsIt()
	},
}

// askOwnTest tests that what a learner is asked to write sees the mistake, and that no right lock fails
// there. A test without a body sees nothing.
func (e Exercise) askOwnTest(t *testing.T) {
	key := mistakes[e.Name].variant()
	right, wrong := made[e.Name+" "+e.String()], made[e.Name+" "+key]
	if right == nil || wrong == nil {
		return
	}
	t.Run("a learner's own test", func(t *testing.T) {
		t.Parallel()
		server, err := zktest.Shared()
		require.NoError(t, err)
		asked := func(lock property.Subject, test func(a, b, c *Client)) property.Verdict {
			r := askOwn(t.Context(), server, lock, test)
			t.Log(lock.Name, r.Verdict, r.Evidence)
			return r.Verdict
		}
		assert.Equal(t, property.Yes, asked(right[0], ownTests[e.Name]), "the step's own lock")
		assert.Equal(t, property.No, asked(wrong[0], ownTests[e.Name]), key)
		assert.Equal(t, property.Yes, asked(wrong[0], func(_, _, _ *Client) {}), "an empty test")
	})
}
