package exercise

import (
	"bytes"
	"context"
	"regexp"
	"runtime/pprof"
	"strings"
	"time"

	"zklock/internal/check/zktest"
)

// labelled does something for a property. All goroutines that are begun by it bear its name.
func labelled(property string, do func()) {
	pprof.Do(context.Background(), pprof.Labels("property", property), func(context.Context) { do() })
}

var itsLabel = regexp.MustCompile(`(?m)^# labels: .*"property":"(.*?)"`)

// leftBehind are the places in the learner's files where goroutines are that do not end,
// by the properties that have begun them.
func leftBehind() (places map[string]string) {
	for deadline := time.Now().Add(zktest.Patience / 6); ; time.Sleep(20 * time.Millisecond) {
		places = running()
		if len(places) == 0 || time.Now().After(deadline) {
			return places
		}
	}
}

// running are the places where goroutines are now.
func running() map[string]string {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1) // a buffer takes all
	places := map[string]string{}
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		label := itsLabel.FindStringSubmatch(stack)
		at := place(stack)
		if label != nil && at != "" {
			places[label[1]] = at
		}
	}
	return places
}
