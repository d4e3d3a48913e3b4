package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

// The processes contend for a while. Each turn has a little work in it: with
// none, a tenure would be over so soon that the waits would tell how the machine
// shares its cores out, and not how the lock does.
const (
	processes = 4
	contest   = 6 * time.Second
	work      = time.Millisecond
)

// A tenure is the time for which one process has the lock, told by its token.
type tenure struct {
	process    int
	token      int64
	begin, end time.Time
	turns      int
}

// A share is what one process got. It waits from the end of one of its tenures
// to the beginning of the next.
type share struct {
	turns   int
	tenures int
	waits   []time.Duration
	others  int // the most tenures that others had during one wait
}

// still is the longest time for which no process at all had the lock.
func still(all []tenure) (longest time.Duration) {
	for i := 1; i < len(all); i++ {
		longest = max(longest, all[i].begin.Sub(all[i-1].end))
	}
	return longest
}

// share lets processes contend for one lock, each with several goroutines, and
// returns all tenures, in order.
func (s stage) share() (all []tenure) {
	s.on(func(s stage, z *zktest.Zoo) {
		var children []*zktest.Process
		for range processes {
			children = append(children, z.Process("bench", z.Root))
		}
		for _, child := range children {
			if line := child.Line(); line != "ready" {
				s.Fatalf("a child process said %q", line)
			}
		}
		_, err := z.Observer().Create(z.Root+"/go", nil, 0, zk.WorldACL(zk.PermAll))
		s.must(err)
		for i, child := range children {
			for line := child.Line(); line != "done"; line = child.Line() {
				t := tenure{process: i}
				var begin, end int64
				if _, err := fmt.Sscan(line, &t.token, &begin, &end, &t.turns); err != nil {
					s.Fatalf("a child process said %q", line)
				}
				t.begin, t.end = time.Unix(0, begin), time.Unix(0, end)
				all = append(all, t)
			}
		}
	})
	slices.SortFunc(all, func(a, b tenure) int { return cmp.Compare(a.token, b.token) })
	return all
}

// shares reads the shares off the tenures, which are in order.
func shares(all []tenure) []share {
	got := make([]share, processes)
	last := make([]int, processes) // where its last tenure stands, from 1
	for at, t := range all {
		g := &got[t.process]
		if before := last[t.process]; before > 0 {
			g.waits = append(g.waits, t.begin.Sub(all[before-1].end))
			g.others = max(g.others, at-before)
		}
		last[t.process] = at + 1
		g.tenures++
		g.turns += t.turns
	}
	return got
}

// contend is the child process: its goroutines share one Cohort. It prints its
// tenures when all is over: printing meanwhile would be work.
func contend(servers, args []string) {
	root := args[0]
	s, err := reentrant.Open(servers, zktest.SessionTimeout)
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	defer s.Close()
	lock := reentrant.NewCohort(s, root+"/lock")
	if err := through(lock)(context.Background()); err != nil { // the directory is there now
		zktest.Say("%v", err)
		return
	}
	there, _, begins, err := s.Conn().ExistsW(root + "/go")
	zktest.Say("ready")
	if err == nil && !there {
		<-begins
	}
	base := time.Now() // from here on the clock of the machine may be set, and does not count
	at := func(t time.Time) int64 { return base.UnixNano() + t.Sub(base).Nanoseconds() }
	tenures, err := contendFor(lock, contest)
	for _, t := range tenures {
		zktest.Say("%d %d %d %d", t.token, at(t.begin), at(t.end), t.turns)
	}
	if err != nil {
		zktest.Say("%s", strconv.Quote(err.Error()))
	}
	zktest.Say("done")
}

// contendFor takes turns for a time. The lock guards the tenures.
func contendFor(lock *reentrant.Cohort, d time.Duration) (tenures []tenure, err error) {
	var all sync.WaitGroup
	errs := make(chan error, goroutines)
	begin := time.Now()
	for range goroutines {
		all.Go(func() {
			for time.Since(begin) < d {
				held, err := lock.Lock(context.Background())
				if err != nil {
					errs <- err
					return
				}
				now := time.Now()
				token, _ := reentrant.Token(held)
				if n := len(tenures); n == 0 || tenures[n-1].token != token {
					tenures = append(tenures, tenure{token: token, begin: now})
				}
				time.Sleep(work)
				t := &tenures[len(tenures)-1]
				t.turns++
				t.end = time.Now()
				if err := lock.Unlock(held); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return tenures, <-errs // nil, if there is none
}
