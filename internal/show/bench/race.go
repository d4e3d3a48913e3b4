package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/show/page"
	"zklock/internal/show/peers"
	"zklock/internal/show/setting"
)

// A turn is one hand-over: the caller comes, holds the lock, and goes.
type turn func() error

// takeTurns takes turns on as many goroutines as there are, for d and at least once each.
func takeTurns(turns []turn, d time.Duration) (all []peers.Turn, err error) {
	var running sync.WaitGroup
	had := make([][]peers.Turn, len(turns))
	errs := make([]error, len(turns))
	begin := time.Now()
	for i, take := range turns {
		running.Go(func() {
			for had[i] == nil || time.Since(begin) < d {
				asked := time.Since(begin)
				if errs[i] = take(); errs[i] != nil {
					return
				}
				had[i] = append(had[i], peers.Turn{Client: i, Asked: asked, Done: time.Since(begin)})
			}
		})
	}
	running.Wait()
	return slices.Concat(had...), errors.Join(errs...)
}

// begin brings n contenders to a rival's lock, and lets each take a turn.
func (s stage) begin(r rival, z *zktest.Zoo, server string, n int) runner {
	run := r.bring(s, z, server, n)
	_, err := run(0)
	s.must(err)
	return run
}

// rounds lets the rivals' contenders take turns, often and for a short while, so that
// whatever disturbs the machine disturbs all. It returns what each measure says of each
// rival's turns, round by round.
func (s stage) rounds(
	rivals []rival,
	n, rounds int,
	stint time.Duration,
	measures ...func([]peers.Turn) float64,
) [][][]float64 {
	measured := make([][][]float64, len(measures))
	for m := range measures {
		measured[m] = make([][]float64, len(rivals))
	}
	s.on(func(s stage, z *zktest.Zoo) {
		var runners []runner
		for _, r := range rivals {
			runners = append(runners, s.begin(r, z, z.Servers()[0], n))
		}
		for round := range rounds {
			for j := range rivals {
				s.must(s.ctx.Err())
				i := (round + j) % len(rivals) // nobody is always the first
				turns, err := runners[i](stint)
				s.must(err)
				for m, measure := range measures {
					measured[m][i] = append(measured[m][i], measure(turns))
				}
			}
		}
	})
	return measured
}

// pace is how many turns a second were done until all were.
func pace(turns []peers.Turn) float64 {
	last := slices.MaxFunc(turns, func(a, b peers.Turn) int { return cmp.Compare(a.Done, b.Done) })
	return float64(len(turns)) / last.Done.Seconds()
}

// beside is the median of values, and of their ratios to others of the same rounds,
// with the lowest and the highest ratio.
func beside(values, others []float64) string {
	to := ratios(values, others)
	return fmt.Sprintf(
		"%9.0f %7.2f %14s",
		median(values),
		median(to),
		fmt.Sprintf("%.2f to %.2f", slices.Min(to), slices.Max(to)),
	)
}

// ratios are those of values to others of the same rounds.
func ratios(values, others []float64) (all []float64) {
	for round, value := range values {
		all = append(all, value/others[round])
	}
	return all
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// compare measures rivals with n contenders in many short rounds, and prints what it
// has found.
func (s stage) compare(title string, rivals []rival, n int) {
	const rounds, stint = 61, 35 * time.Millisecond
	say("%s, %d rounds", title, rounds)
	rates := s.rounds(rivals, n, rounds, stint, pace)[0]
	line("\n%s", title)
	line("  %-32s %9s %7s %14s %10s %8s", "", "a second", "ratio", "", "requests", "bytes")
	for i, r := range rivals {
		c := s.count(r, n)
		line("  %-32s %s %10.2f %8.0f", r.name, beside(rates[i], rates[0]), c.requests, c.sent+c.received)
	}
}

// peers measures the locks of other people and all of ours, with few and with many
// contenders, each with a session or a connection of its own.
func (s stage) peers() {
	contenders, err := setting.Read(
		"CONTENDERS",
		[]int{1, 8, 32, 100},
		"numbers from 1 to 200, such as 1,8,32,100",
		sizes,
	)
	s.must(err)
	rounds, err := setting.Number("ROUNDS", 9, 1, 99)
	s.must(err)
	others, missing := s.others()
	var rows []page.Benched
	for _, n := range contenders {
		rows = append(rows, s.race(slices.Concat(ours, others), n, rounds)...)
	}
	for _, m := range missing {
		line("Left out: %s", m)
	}
	const kept = "out/bench.json"
	s.must(page.KeepBenched(kept, rows))
	line("These rows are in %s. The charts are drawn from those in %s.", kept, page.BenchedFile)
}

// sizes reads a list such as 1,8,32.
func sizes(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		isOutOfRange := n < 1 || n > 200
		if err != nil || isOutOfRange {
			return nil, errors.New("no size")
		}
		all = append(all, n)
	}
	return all, nil
}

// race measures rivals with n contenders in a few long rounds, and prints who had the
// turns, too.
func (s stage) race(rivals []rival, n, rounds int) (rows []page.Benched) {
	say("%d contenders, %d locks, %d rounds", n, len(rivals), rounds)
	measured := s.rounds(rivals, n, rounds, stint, withinStint, toAnother, longestTurn)
	rates, changes, longest := measured[0], measured[1], measured[2]
	line("\nContenders: %d. Rounds: %d.", n, rounds)
	line("%s", page.BenchedHead())
	for i, r := range rivals {
		c, to := s.count(r, n), ratios(rates[i], rates[0])
		row := page.Benched{
			Contenders: n, Lock: r.name,
			PerSecond: median(rates[i]), Ratio: median(to), Least: slices.Min(to), Most: slices.Max(to),
			ToAnother: median(changes[i]), Longest: median(longest[i]),
			Requests: c.requests, Writes: c.writes, ReplyBytes: c.received,
		}
		line("%s", row.Text())
		rows = append(rows, row)
	}
	return rows
}

// stint is one lock's part of a round of a race. All begin at once, and who has had no
// turn by its end has one still, which counts for the longest turn alone.
const stint = 500 * time.Millisecond

// withinStint is how many turns a second were done in time.
func withinStint(turns []peers.Turn) float64 { return float64(len(inTime(turns))) / stint.Seconds() }

// inTime are those that were, in their order.
func inTime(turns []peers.Turn) []peers.Turn {
	late := func(t peers.Turn) bool { return t.Done > stint }
	return slices.SortedFunc(slices.Values(slices.DeleteFunc(slices.Clone(turns), late)),
		func(a, b peers.Turn) int { return cmp.Compare(a.Done, b.Done) })
}

// toAnother is how large a part of these went to another than the one before.
func toAnother(turns []peers.Turn) (changed float64) {
	turns = inTime(turns)
	for i := 1; i < len(turns); i++ {
		if turns[i].Client != turns[i-1].Client {
			changed++
		}
	}
	return changed / float64(max(len(turns), 1))
}

// longestTurn is the longest of all turns, in mean turns.
func longestTurn(turns []peers.Turn) float64 {
	var longest, sum time.Duration
	for _, t := range turns {
		took := t.Done - t.Asked
		longest, sum = max(longest, took), sum+took
	}
	return float64(longest) * float64(len(turns)) / float64(sum)
}

// A cost is what one turn takes, in requests, writes and bytes.
type cost struct{ requests, writes, sent, received float64 }

// count tells what a turn takes. The clients of ZooKeeper are listened to on the line,
// the other servers are asked.
func (s stage) count(r rival, n int) (one cost) {
	s.on(func(s stage, z *zktest.Zoo) {
		server, tap := s.tapped(z.Servers()[0])
		run := s.begin(r, z, server, n)
		count := func() peers.Counts {
			if r.at == nil {
				return counts(tap)
			}
			c, err := r.at.Counts()
			s.must(err)
			return c
		}
		before := count()
		turns, err := run(300 * time.Millisecond)
		s.must(err)
		after := count()
		each := func(before, after int) float64 { return float64(after-before) / float64(len(turns)) }
		one = cost{each(before.Requests, after.Requests), each(before.Writes, after.Writes),
			each(before.Sent, after.Sent), each(before.Received, after.Received)}
	})
	return one
}

// create2 is Curator's create: one whose reply has the Stat, too.
const create2 wiretap.Op = 15

func counts(tap *wiretap.Tap) peers.Counts {
	c := wiretap.Count(tap.Frames())
	writes := c.Requests[wiretap.Create] + c.Requests[create2] + c.Requests[wiretap.Delete]
	return peers.Counts{Requests: c.All(), Writes: writes, Sent: c.Sent, Received: c.Received}
}

// tapped opens an address that leads to ZooKeeper, and listens to what passes.
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
			go relay(client, tap, server)
		}
	}()
	return listener.Addr().String(), tap
}

// relay hands on what a client and a server say, to the server frame by frame: see
// wiretap.
func relay(client net.Conn, tap *wiretap.Tap, address string) {
	defer client.Close()
	server, err := tap.Dial("tcp", address, 10*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, server)
	}()
	for {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(client, frame); err != nil {
			return
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(client, frame[4:]); err != nil {
			return
		}
		if _, err := server.Write(frame); err != nil {
			return
		}
	}
}
