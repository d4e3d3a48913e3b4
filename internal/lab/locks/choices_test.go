package locks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatCanBeChosen(t *testing.T) {
	for key, want := range map[string]Choice{
		"3w":      {Key: "3w", lock: "3w"},
		"5.5":     {Key: "5.5", lock: "5"},
		"04":      {Key: "4", lock: "4"},
		"rwmutex": {Key: "rwmutex", lock: "rwmutex"},
		"W8":      {Key: "W8", lock: "4", test: "^TestW8TrustsTheWakeUp$"},
		"mine":    {Key: "mine"},
		"mine4":   {Key: "mine4", lock: "4"},
	} {
		got, err := Choose(key)
		require.NoError(t, err, key)
		assert.NotEmpty(t, got.Name.EN, key)
		assert.NotEmpty(t, got.Lesson.ZH, key)
		assert.Equal(t, want, Choice{Key: got.Key, lock: got.lock, test: got.test}, key)
	}
	for _, key := range []string{"7", "W0", "W25", "w8", "mine7", ""} {
		_, err := Choose(key)
		assert.Error(t, err, "STEP=%q", key)
	}
}

// Each lock of the list is made by somebody: Of panics else.
func TestEachLockIsMade(t *testing.T) {
	for _, l := range Locks {
		assert.Equal(t, l.Subject, Of(l.Key).Name)
	}
}
