// Package stairs asks the chapter's stairs for their properties. TestTheStairs, in
// ../stairs_test.go, makes the packages stair0 to stair7 out of the chapter, and builds this test.
package stairs

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
	stair0 "zklock/step05_reentrant/stair0"
	stair1 "zklock/step05_reentrant/stair1"
	stair2 "zklock/step05_reentrant/stair2"
	stair3 "zklock/step05_reentrant/stair3"
	stair4 "zklock/step05_reentrant/stair4"
	stair5 "zklock/step05_reentrant/stair5"
	stair6 "zklock/step05_reentrant/stair6"
	stair7 "zklock/step05_reentrant/stair7"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// stairs are the locks, from the starter to the package itself.
var stairs = []property.Subject{
	lock("5.0", stair0.Open, stair0.New),
	lock("5.1", stair1.Open, stair1.New),
	lock("5.2", stair2.Open, stair2.New),
	lock("5.3", stair3.Open, stair3.New),
	lock("5.4", stair4.Open, stair4.New),
	lock("5.5", stair5.Open, stair5.New),
	lock("5.6", stair6.Open, stair6.New),
	lock("5.7", stair7.Open, stair7.New),
}

func lock[S zktest.Session, H zktest.Hold, L interface {
	Lock(context.Context) (H, error)
	TryLock(context.Context) (H, error)
}](
	name string,
	open func([]string, time.Duration, ...func(*zk.Conn)) (S, error),
	newLock func(S, string) L,
) property.Subject {
	quietly := func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error) {
		return open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	return property.OverHolds(name, quietly, newLock)
}

// gives are the properties that each stair gives the lock, and that the one before lacks. The first
// of each is quoted in the chapter.
var gives = [][]*property.Property{
	1: {property.LostCreateReply},
	2: {property.OldZnode, property.LaggingServer},
	3: {property.LostDeleteReply, property.TryLost, property.GivesUpCutOff},
	4: {property.LocksAgain},
	5: {property.LineBreaks, property.LostWhileWaiting},
	6: {property.ToldOfLoss},
	7: {property.Fenced},
}

func TestStairs(t *testing.T) {
	for stair, properties := range gives {
		for i, p := range properties {
			t.Run(stairs[stair].Name+" "+p.String(), func(t *testing.T) {
				t.Parallel()
				before := asked(t, stairs[stair-1], p, property.No)
				after := asked(t, stairs[stair], p, property.Yes)
				if i == 0 {
					chapter.Says(t, "stair %s  %s", stairs[stair-1].Name, before)
					chapter.Says(t, "stair %s  %s", stairs[stair].Name, after)
				}
			})
		}
	}
}

// The check of the exercise stops a lock that is a stair at the property of the next one: the stair
// has all that is asked before.
func TestTheCheckStopsAtTheNextStair(t *testing.T) {
	stair := 0
	for end, p := range exercise.Step5.Properties {
		next := stair + 1
		isRedLine := next < len(gives) && p == gives[next][0]
		if !isRedLine {
			continue
		}
		for _, p := range exercise.Step5.Properties[:end] {
			t.Run(stairs[stair].Name+" "+p.String(), func(t *testing.T) {
				t.Parallel()
				asked(t, stairs[stair], p, property.Yes)
			})
		}
		stair = next
	}
	if stair != len(stairs)-1 {
		t.Errorf("the check asks for the properties of the stairs in another order than the stairs")
	}
}

// A name alone is worse than none: the starter has a property that the first stair loses, and the
// second gives back.
func TestTheFirstStairLosesAProperty(t *testing.T) {
	t.Parallel()
	asked(t, stairs[0], property.OldZnode, property.Yes)
	asked(t, stairs[1], property.OldZnode, property.No)
}

// asked asks a stair for a property, once more if there was no answer, and returns the line that
// says what was seen.
func asked(t *testing.T, stair property.Subject, p *property.Property, want property.Verdict) string {
	t.Helper()
	server, err := zktest.Shared()
	if err != nil {
		t.Fatal(err)
	}
	check := func() property.Result { return property.Check(server, stair, p) }
	r := property.Beside(check).OrAlone(check)
	line := r.String()
	if r.Verdict != want {
		t.Fatalf("%s: want %s: %s", stair.Name, want, line)
	}
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.inChapter)
	}
	return line
}

// varying is what differs from run to run.
var varying = []struct {
	pattern   *regexp.Regexp
	inChapter string
}{
	{regexp.MustCompile(`_c_[0-9a-f]{16}`), "_c_<guid>"},
	{regexp.MustCompile(`0x[0-9a-f]+`), "<id>"},
	{regexp.MustCompile(`tokens \[[0-9 ]+\]`), "tokens […]"},
}
