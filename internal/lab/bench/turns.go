package bench

import (
	"cmp"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"zklock/internal/lab/peers"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A turn calls Lock, and then Unlock.
type turn func() error

// takeTurns runs each of the turns on a goroutine of its own, repeatedly for d, and at least once.
func takeTurns(turns []turn, d time.Duration) (all []peers.Turn, err error) {
	var running sync.WaitGroup
	had := make([][]peers.Turn, len(turns))
	errs := make([]error, len(turns))
	began := time.Now()
	for i, take := range turns {
		running.Go(func() {
			for had[i] == nil || time.Since(began) < d {
				asked := time.Since(began)
				if errs[i] = take(); errs[i] != nil {
					return
				}
				had[i] = append(had[i], peers.Turn{Client: i, Asked: asked, Done: time.Since(began)})
			}
		})
	}
	running.Wait()
	return slices.Concat(had...), errors.Join(errs...)
}

// inTime returns the turns that ended within the stint, in the order in which they ended. A
// contender that has had no turn by then finishes its first one later: that turn counts only for
// the longest turn.
func inTime(turns round) round {
	late := func(t peers.Turn) bool { return t.Done > stint }
	done := slices.DeleteFunc(slices.Clone(turns), late)
	slices.SortFunc(done, func(a, b peers.Turn) int { return cmp.Compare(a.Done, b.Done) })
	return done
}

// aSecond returns how many turns a second were done in time.
func aSecond(turns round) float64 { return float64(len(inTime(turns))) / stint.Seconds() }

// toAnother returns the share of these turns that went to another contender than the turn before.
func toAnother(turns round) float64 {
	changed := 0
	done := inTime(turns)
	for i := 1; i < len(done); i++ {
		if done[i].Client != done[i-1].Client {
			changed++
		}
	}
	return float64(changed) / float64(max(len(done), 1))
}

// longest returns the longest of all turns, as a multiple of the mean turn.
func longest(turns round) float64 {
	var most, sum time.Duration
	for _, t := range turns {
		took := t.Done - t.Asked
		most, sum = max(most, took), sum+took
	}
	return float64(most) * float64(len(turns)) / float64(sum)
}

// begin lets n contenders join a lock, and lets each take a turn.
func (s stage) begin(r rival, z *zktest.Zoo, server string, n int) runner {
	run := r.bring(s, z, server, n)
	_, err := run(0)
	s.must(err)
	return run
}

// count counts what a turn costs on the wire: requests, and bytes in both directions.
func (s stage) count(r rival, n int) (requests, bytes float64) {
	s.on(func(s stage, z *zktest.Zoo) {
		address, tap := s.tapped(z.Servers()[0])
		run := s.begin(r, z, address, n)
		mark := tap.Mark()
		turns, err := run(300 * time.Millisecond)
		s.must(err)
		c := wiretap.Count(tap.Since(mark))
		requests = float64(c.All()) / float64(len(turns))
		bytes = float64(c.Sent+c.Received) / float64(len(turns))
	})
	return requests, bytes
}

// tapped opens an address that leads to ZooKeeper, and taps every connection to it. So clients in
// other languages can be tapped as well.
func (s stage) tapped(server string) (address string, tap *wiretap.Tap) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.Cleanup(func() { listener.Close() })
	tap = wiretap.New()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go tap.Relay(client, server)
		}
	}()
	return listener.Addr().String(), tap
}
