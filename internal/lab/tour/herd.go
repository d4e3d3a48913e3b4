package tour

import (
	"context"
	"encoding/json"
	"slices"

	"zklock/internal/lab/herd"
)

// RecordHerd measures the queues of steps 3 and 4, and returns the crowds that the pages show: of each
// size the last release.
func (t *Tour) RecordHerd(ctx context.Context) ([]byte, error) {
	t.Locks = slices.DeleteFunc(slices.Clone(t.Locks), func(l Exhibit) bool { return !l.among("3", "4") })
	t.jobs.Store(int64(queueJobs * len(t.Locks)))
	if err := t.queues(ctx); err != nil {
		return nil, t.explained(err)
	}
	var crowds []herd.Crowd
	three, four := t.Queues[0].Crowds, t.Queues[1].Crowds
	for i := range three {
		last := func(c Crowd) herd.Release { return c.Releases[len(c.Releases)-1].Herd }
		crowds = append(crowds, herd.Crowd{Waiters: three[i].Waiters,
			Releases: [2]herd.Release{last(three[i]), last(four[i])}})
	}
	text, err := json.Marshal(crowds)
	return append(text, '\n'), err
}
