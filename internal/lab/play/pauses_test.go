package play

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/book"
	"zklock/internal/lab/stage"
)

// The recorded pauses are those that the reader can choose. Some end before the session does, and some after: then only
// the lock that gives tokens keeps the late write out.
func TestTheRecordedPauses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", book.PausesFile))
	require.NoError(t, err)
	var kept struct {
		Stories []struct {
			ID, Step string
			Phases   []stage.Phase
			Clients  []struct{ Over int }
			Writes   []struct {
				Client   int
				Token    int64
				OK, Late bool
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &kept))
	steps := []string{"4", "5"}
	require.Len(t, kept.Stories, longestPause*len(steps))
	wasLate := false
	for i, s := range kept.Stories {
		seconds := shortestPause + i/len(steps)
		assert.Equal(t, []string{pauseID(seconds), steps[i%2]}, []string{s.ID, s.Step})
		require.NotEmpty(t, s.Writes)
		assert.Len(t, s.Phases, 3, s.ID)
		last := s.Writes[len(s.Writes)-1]
		assert.Zero(t, last.Client, "the client that was stopped writes last, in %s", s.ID)
		isRefused := last.Late && s.Step == "5"
		assert.Equal(t, !isRefused, last.OK, "accepted in %s, step %s", s.ID, s.Step)
		assert.True(t, last.Late || !wasLate, "a longer pause than a late one is in time: %s", s.ID)
		wasLate = last.Late
		assert.Equal(t, last.Late, s.Clients[0].Over > 0, "its session has ended, in %s", s.ID)
		for _, w := range s.Writes {
			want := int64(0)
			if s.Step == "5" {
				want = recordedTokens[w.Client]
			}
			assert.Equal(t, want, w.Token, "the token of client %d: a longer pause does not change it, in %s", w.Client, s.ID)
		}
	}
	assert.True(t, wasLate, "the longest is late")
	assert.Len(t, kept.Stories[0].Writes, 1, "during the shortest pause nobody else writes")
}

// On a slow machine client 1 may write right after client 0, whose session still lives. The lesson ends all the same.
func TestALessonEndsWhoeverWritesLast(t *testing.T) {
	t.Parallel()
	b := &side{Recorder: stage.New()}
	task := lessons[4].Tasks[0]
	b.Put(1, &stage.Figure{Number: 1}, 0)
	assert.False(t, task.done(b), "client 0 has not written")
	b.Put(2, &stage.Figure{Number: 0}, 0)
	b.Put(3, &stage.Figure{Number: 1}, 0)
	assert.True(t, task.done(b))
	assert.Equal(t, 1, lessons[4].Guesses[0].measured(b))
	assert.Contains(t, task.seen(b).EN, "has accepted the late write of client 0")
}

// A long token is shown by its end, where two tokens differ; a count has its thousands separated.
func TestNumbersAreReadAtAGlance(t *testing.T) {
	t.Parallel()
	for token, want := range map[int64]string{6: "6", 999: "999", 4294968055: "…055"} {
		assert.Equal(t, want, stage.ShortToken(token))
	}
	for n, want := range map[int]string{7: "7", 611: "611", 1234: "1,234", 1234567: "1,234,567"} {
		assert.Equal(t, want, stage.Number(n))
	}
}
