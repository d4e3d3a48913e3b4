package exercise

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"zklock/internal/property"
)

// One property can fail in different ways: the question follows what was seen.
func TestTheQuestionFollowsWhatWasSeen(t *testing.T) {
	p := property.GivingUp
	for seen, ask := range map[string]string{
		"B gave up, and left [/lock/lock-0000000001] behind":                                      p.Question.EN,
		`B gave up, and its Lock answered <nil> instead of "context canceled"`:                    "which error does Lock return",
		"D waits behind A: its deadline has passed, and its Lock does not return; left by it: []": "what does Lock wait for besides",
		"waited in vain for B's Lock to return":                                                   "who is to tell the one who waits",
		"B is not let in, and does not come to rest: it has sent 40 requests, the last: [list /]": "what makes it rest",
		"a call without a context, such as Unlock, has not come back within 7s":                   "what does Unlock wait for",
		"B sent 4000 requests without a rest before them: it does not sleep":                      "what ends its rest",
		"panic: runtime error: invalid memory address or nil pointer dereference, at lock.go:13":  "what is at this line",
		"a goroutine was left behind, at lock.go:13":                                              "what ends this goroutine",
		"the process ended with code 3, as by os.Exit":                                            "whose process is it",
	} {
		assert.Contains(t, question(p, seen), ask, seen)
	}
	expired := `B's session expired while it waited; wanted was the error "zk: session has been expired by the server", and …`
	assert.Contains(t, question(property.LostWhileWaiting, expired), "which error did the watch's event bring")
	assert.Equal(t, property.OwnPlace.Question.EN, question(property.OwnPlace, "B's Lock answered: zk: node does not exist"))
}

func TestTwoLines(t *testing.T) {
	assert.Equal(t, "short", InTwoLines("short"))
	assert.Equal(t, "in the queue: [_c_20fa…-lock-0000000000]", InTwoLines("in the queue: [_c_20fa04fa2fd5ca7b-lock-0000000000]"))
	for _, word := range []string{"word ", "字", "a/path/without/a/space"} {
		for n := range 60 {
			lines := strings.Split(InTwoLines(strings.Repeat(word, n)), "\n")
			assert.LessOrEqual(t, len(lines), 2)
			for _, line := range lines {
				assert.LessOrEqual(t, width(strings.TrimSuffix(line, " …")), columns)
			}
		}
	}
}
