// Package stairs asks the chapter's stairs for their properties. TestTheStairs, in
// ../stairs_test.go, makes the packages stair0 to stair10 out of the diffs, and once, a wrong lock. It builds this test.
package stairs

import (
	"regexp"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/exercise"
	"zklock/internal/property"
	"zklock/internal/zktest"
	once "zklock/step05_reentrant/once"
	stair0 "zklock/step05_reentrant/stair0"
	stair1 "zklock/step05_reentrant/stair1"
	stair10 "zklock/step05_reentrant/stair10"
	stair2 "zklock/step05_reentrant/stair2"
	stair3 "zklock/step05_reentrant/stair3"
	stair4 "zklock/step05_reentrant/stair4"
	stair5 "zklock/step05_reentrant/stair5"
	stair6 "zklock/step05_reentrant/stair6"
	stair7 "zklock/step05_reentrant/stair7"
	stair8 "zklock/step05_reentrant/stair8"
	stair9 "zklock/step05_reentrant/stair9"
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
	lock("5.8", stair8.Open, stair8.New),
	lock("5.9", stair9.Open, stair9.New),
	lock("5.10", stair10.Open, stair10.New),
}

func lock[S zktest.Session, L any](
	name string,
	open func([]string, time.Duration, ...func(*zk.Conn)) (S, error),
	newLock func(S, string) L,
) property.Subject {
	quietly := func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error) {
		return open(servers, timeout, zk.WithDialer(dial), zk.WithLogger(zktest.NoLog))
	}
	return property.OverSession(name, quietly, newLock)
}

// gives are the properties that each stair gives the lock, and that the one before lacks. The first
// of each is quoted in the chapter.
var gives = [][]*property.Property{
	1:  {property.LostCreateReply},
	2:  {property.OldZnode, property.LaggingServer},
	3:  {property.LostDeleteReply, property.GivesUpCutOff},
	4:  {property.LineBreaks, property.GivesUpAtOnce},
	5:  {property.KeptWatch, property.KeptList},
	6:  {property.LostApart},
	7:  {property.ToldOfLoss},
	8:  {property.Fenced},
	9:  {property.LocksAgain},
	10: {property.Tries, property.TryLost},
}

// lacks is the verdict on a property of the next stair. Without TryLock the question does not arise.
func lacks(stair int) property.Verdict {
	if stair == len(stairs)-1 {
		return property.Void
	}
	return property.No
}

func TestStairs(t *testing.T) {
	for stair, properties := range gives {
		if stair > 0 && properties[0] != exercise.Stairs[stair-1] {
			t.Errorf("5.%d is for %q, and make exercise says that it is for %q", stair, properties[0], exercise.Stairs[stair-1])
		}
		for i, p := range properties {
			t.Run(stairs[stair].Name+" "+p.String(), func(t *testing.T) {
				t.Parallel()
				before := asked(t, stairs[stair-1], p, lacks(stair))
				after := asked(t, stairs[stair], p, property.Yes)
				if i == 0 {
					chapter.SaysIn(t, page(stair), "stair %s  %s", stairs[stair-1].Name, before)
					chapter.SaysIn(t, page(stair), "stair %s  %s", stairs[stair].Name, after)
				}
			})
		}
	}
}

// page is the part of the chapter that has the stair.
func page(stair int) string {
	if stair <= 5 {
		return "README.md"
	}
	return "holder.md"
}

// The check of the exercise stops a lock that is a stair at the property of the next one: the stair has all that is
// asked before.
func TestTheCheckStopsAtTheNextStair(t *testing.T) {
	for n, stair := range stairs[:len(stairs)-2] { // the last stair may be left out
		for _, p := range exercise.Step5.Properties {
			if p == gives[n+1][0] {
				break
			}
			t.Run(stair.Name+" "+p.String(), func(t *testing.T) {
				t.Parallel()
				asked(t, stair, p, property.Yes)
			})
		}
	}
}

// Two stairs lose a property that the starter has, and a later stair gives it back: a name alone is worse than none,
// and so is a retry alone.
func TestTwoStairsLoseAProperty(t *testing.T) {
	t.Parallel()
	for _, lost := range []struct {
		by, until int
		property  *property.Property
	}{
		{1, 2, property.OldZnode},
		{3, 5, property.LostTold},
	} {
		asked(t, stairs[lost.by-1], lost.property, property.Yes)
		for stair := lost.by; stair < lost.until; stair++ {
			asked(t, stairs[stair], lost.property, property.No)
		}
		asked(t, stairs[lost.until], lost.property, property.Yes)
	}
}

// Before 5.5 no stair knows the session of a list. TestStairs asks 5.4 and 5.5.
func TestAListOfTheNextSessionLetsTheFirstStairsIn(t *testing.T) {
	t.Parallel()
	for _, stair := range stairs[:4] {
		asked(t, stair, property.KeptList, property.No)
	}
}

// A lock that is made from a Session queues up again when its session has ended, also one whose Lock returns no hold.
func TestAWaiterWhoseSessionEndedQueuesAgain(t *testing.T) {
	t.Parallel()
	queuesOnce := lock("5.5 that queues up once", once.Open, once.New)
	for _, p := range []*property.Property{property.LostWhileWaiting, property.KeptWatch} {
		asked(t, queuesOnce, p, property.No)
	}
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
