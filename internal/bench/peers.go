package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/peers"
	"zklock/internal/process"
	"zklock/internal/setting"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
)

// A rival is somebody's lock beside zk.Lock.
type rival struct {
	name  string
	bring bring
	at    *peers.Store // nil: at ZooKeeper
}

// A bring brings n contenders to a lock of their own on a server. Clients are those of
// them that are tapped.
type bring func(s stage, z *zktest.Zoo, server string, n int) (runner, []*zktest.Client)

// A runner lets the contenders take turns for a while, each at least one.
type runner func(d time.Duration) ([]peers.Turn, error)

// here brings contenders of this process.
func here(c contender) bring {
	return func(s stage, z *zktest.Zoo, server string, n int) (runner, []*zktest.Client) {
		sessions := n
		if c.share {
			sessions = 1
		}
		turns, clients := s.join(z, c, n, sessions)
		return func(d time.Duration) ([]peers.Turn, error) { return takeTurns(z.Ctx, turns, d) }, clients
	}
}

// conn brings contenders with a lock over a session of the client's own.
func conn[L zktest.Locker](newLock func(*zk.Conn, string) L) bring {
	return here(contender{open: overConn(func(c *zk.Conn, path string) turn { return inTurn(newLock(c, path)) })})
}

// peer brings contenders in a process of other people's.
func peer(start func(s stage, z *zktest.Zoo, server, path string, n int) peers.Peer) bring {
	return func(s stage, z *zktest.Zoo, server string, n int) (runner, []*zktest.Client) {
		p := start(s, z, server, anyPath(z), n)
		_, err := p.Run(0)
		s.must(err)
		return p.Run, nil
	}
}

// cohorts brings n goroutines, as many in each of some processes as in the others, or
// one more. Those of a process share a Cohort.
func cohorts(s stage, z *zktest.Zoo, server string, n int) (runner, []*zktest.Client) {
	place := Place{Servers: []string{server}, Path: anyPath(z)}
	var children []*process.Process
	for range min(n, processes) {
		children = append(children, s.contestant(place))
	}
	return func(d time.Duration) ([]peers.Turn, error) {
		var running sync.WaitGroup
		had := make([][]peers.Turn, len(children))
		errs := make([]error, len(children))
		for i, child := range children {
			load := Load{Goroutines: (n + i) / len(children), For: d}
			running.Go(func() {
				errs[i] = child.Call("Turns", load, &had[i])
				for j := range had[i] {
					had[i][j].Client += i * n // told apart from the other processes'
				}
			})
		}
		running.Wait()
		return slices.Concat(had...), errors.Join(errs...)
	}, nil
}

func anyPath(z *zktest.Zoo) string { return fmt.Sprintf("%s/lock-%08x", z.Root, rand.Uint32()) }

// sizes reads a list such as 1,8,32.
func sizes(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 200 {
			return nil, errors.New("no size")
		}
		all = append(all, n)
	}
	return all, nil
}

// ours are the locks that need nothing but ZooKeeper.
var ours = []rival{
	{name: "zk.Lock", bring: here(contender{open: overConn(clientLock)})},
	{name: "zk.Lock, once more", bring: here(contender{open: overConn(clientLock)})}, // what it differs by is noise
	{name: "step 1", bring: conn(func(c *zk.Conn, path string) *plainnode.Lock { return plainnode.NewEphemeral(c, path+"/lock") })},
	{name: "step 1, waiters watch", bring: conn(func(c *zk.Conn, path string) *plainnode.Lock { return plainnode.NewWatched(c, path+"/lock") })},
	{name: "step 2", bring: conn(sequentialspin.New)},
	{name: "step 3", bring: conn(childrenwatch.New)},
	{name: "step 4", bring: conn(predecessorwatch.New)},
	{name: "step 4, looks one release early", bring: conn(newEarly)},
	{name: "step 5", bring: here(apart[5])},
	{name: "step 5, Cohort in 1 process", bring: here(together[3])},
	{name: "step 5, Cohorts in 4 processes", bring: cohorts},
	{name: "step 6, as a writer", bring: here(apart[7])},
}

// peers measures the locks of other people and all of ours, with few and with many
// contenders, each with a session or a connection of its own.
func (s stage) peers() {
	contenders, err := setting.Read("CONTENDERS", []int{1, 8, 32, 100}, "numbers from 1 to 200, such as 1,8,32,100", sizes)
	s.must(err)
	rounds, err := setting.Number("ROUNDS", 9, 1, 99)
	s.must(err)
	rivals := slices.Clone(ours)
	missing := s.others(&rivals)
	for _, n := range contenders {
		s.race(rivals, n, rounds)
	}
	for _, m := range missing {
		line("Left out: %s", m)
	}
}

// others adds those locks whose programs are on this machine, and tells which are not.
func (s stage) others(rivals *[]rival) (missing []string) {
	if err := peers.Missing(); err != nil {
		missing = append(missing, fmt.Sprintf("Curator and kazoo: make peers, or %v", err))
	} else {
		*rivals = append(*rivals,
			rival{name: "Curator's mutex", bring: peer(func(s stage, z *zktest.Zoo, server, path string, n int) peers.Peer {
				return peers.Curator(z, s.T, server, "mutex", path, "", n)
			})},
			rival{name: "kazoo's Lock", bring: peer(func(s stage, z *zktest.Zoo, server, path string, n int) peers.Peer {
				return peers.Kazoo(z, s.T, server, path, "", n)
			})})
	}
	if err := peers.MissingStores(); err != nil {
		return append(missing, fmt.Sprintf("Redis and etcd: make peers, or %v", err))
	}
	dir, err := os.MkdirTemp("", "zklock-kv")
	s.must(err)
	s.Cleanup(func() { os.RemoveAll(dir) })
	program := dir + "/kv"
	if err := peers.BuildKV(s.ctx, program); err != nil {
		return append(missing, fmt.Sprintf("Redis and etcd: %v", err))
	}
	keep := func(store *peers.Store, err error) *peers.Store {
		s.must(err)
		s.Cleanup(store.Stop)
		return store
	}
	kv := func(name, kind string, store *peers.Store) rival {
		return rival{name: name, at: store, bring: peer(func(s stage, z *zktest.Zoo, _, path string, n int) peers.Peer {
			return peers.KV(z, s.T, program, kind, store.Address, strings.TrimPrefix(path, "/"), n)
		})}
	}
	always, everysec := keep(peers.StartRedis(s.ctx, "always")), keep(peers.StartRedis(s.ctx, "everysec"))
	*rivals = append(*rivals,
		kv("Redis, SET NX, 100 ms, fsync always", "setnx-100ms", always),
		kv("Redis, SET NX, 100 ms, everysec", "setnx-100ms", everysec),
		kv("Redis, SET NX, 1 ms, fsync always", "setnx-1ms", always),
		kv("redsync, fsync always", "redsync", always),
		kv("redsync, everysec", "redsync", everysec),
		kv("etcd", "etcd", keep(peers.StartEtcd(s.ctx))))
	return missing
}

// race measures all rivals with n contenders, round by round.
func (s stage) race(rivals []rival, n, rounds int) {
	say("%d contenders, %d locks, %d rounds", n, len(rivals), rounds)
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Minute)
	defer cancel()
	rates := make([][]float64, len(rivals))   // turns a second
	changes := make([][]float64, len(rivals)) // turns that went to another than the one before, of all turns
	unfair := make([][]float64, len(rivals))  // the longest turn, in mean turns
	s.on(func(s stage, z *zktest.Zoo) {
		z.Untapped, z.Ctx = true, ctx
		var runners []runner
		for _, r := range rivals {
			run, _ := r.bring(s, z, z.Servers()[0], n)
			runners = append(runners, run)
		}
		for round := range rounds {
			for j := range rivals {
				i := (round + j) % len(rivals) // nobody is always the first
				turns, err := runners[i](stint)
				s.must(err)
				rate, changed, longest := judge(turns)
				rates[i], changes[i], unfair[i] = append(rates[i], rate), append(changes[i], changed), append(unfair[i], longest)
			}
		}
	})
	line("\nContenders: %d. Rounds: %d.", n, rounds)
	line("  %-36s %9s %7s %14s %10s %9s %9s %7s %11s", "", "a second", "ratio", "", "to another", "longest", "requests", "writes", "reply bytes")
	for i, r := range rivals {
		var ratios []float64
		for round := range rates[i] {
			ratios = append(ratios, rates[i][round]/rates[0][round])
		}
		c := s.count(ctx, r, n)
		line("  %-36s %9.0f %7.2f %14s %10.2f %9.1f %9.2f %7.2f %11.0f", r.name, median(rates[i]), median(ratios),
			fmt.Sprintf("%.2f to %.2f", slices.Min(ratios), slices.Max(ratios)), median(changes[i]), median(unfair[i]), c[0], c[1], c[2])
	}
}

// stint is one lock's part of a round. All begin at once, and who has had no turn by
// its end has one still.
const stint = 500 * time.Millisecond

// judge tells how many turns a second were done within the stint, how large a part of
// them went to another than the one before, and the longest of all, in mean turns.
func judge(turns []peers.Turn) (rate, changed, longest float64) {
	slices.SortFunc(turns, func(a, b peers.Turn) int { return cmp.Compare(a.Done, b.Done) })
	var slowest, together time.Duration
	for i, t := range turns {
		if t.Done <= stint {
			rate++
			if i > 0 && t.Client != turns[i-1].Client {
				changed++
			}
		}
		slowest, together = max(slowest, t.Done-t.Asked), together+t.Done-t.Asked
	}
	return rate / stint.Seconds(), changed / max(rate, 1), float64(slowest) * float64(len(turns)) / float64(together)
}

// count tells what a hand-over takes: requests, writes and bytes of replies. The
// locks of ZooKeeper are listened to on the line, the other servers are asked.
func (s stage) count(ctx context.Context, r rival, n int) (each [3]float64) {
	s.on(func(s stage, z *zktest.Zoo) {
		z.Ctx = ctx
		relay := &relay{to: z.Servers()[0]}
		s.must(relay.listen())
		s.Cleanup(relay.close)
		run, clients := r.bring(s, z, relay.address, n)
		taps := relay.taps()
		for _, c := range clients {
			taps = append(taps, c.Tap)
		}
		marks := make([]int, len(taps))
		for i, tap := range taps {
			marks[i] = tap.Mark()
		}
		var before peers.Counts
		if r.at != nil {
			var err error
			before, err = r.at.Counts()
			s.must(err)
		}
		turns, err := run(300 * time.Millisecond)
		s.must(err)
		if r.at != nil {
			after, err := r.at.Counts()
			s.must(err)
			each = [3]float64{float64(after.Requests - before.Requests), float64(after.Writes - before.Writes), float64(after.Bytes - before.Bytes)}
		} else {
			var frames [][]wiretap.Frame
			for i, tap := range taps {
				frames = append(frames, tap.Since(marks[i]))
			}
			c := wiretap.Count(frames...)
			writes := c.Requests[wiretap.Create] + c.Requests[create2] + c.Requests[wiretap.Delete]
			each = [3]float64{float64(c.All()), float64(writes), float64(c.Received)}
		}
		for i := range each {
			each[i] /= float64(len(turns))
		}
	})
	return each
}

// create2 is Curator's create: one whose reply has the Stat, too.
const create2 wiretap.Op = 15

// A relay stands between other people's clients and ZooKeeper, and listens.
type relay struct {
	to, address string
	listener    net.Listener

	mu  sync.Mutex
	all []*wiretap.Tap
}

func (r *relay) listen() (err error) {
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	r.address = r.listener.Addr().String()
	go func() {
		for {
			client, err := r.listener.Accept()
			if err != nil {
				return
			}
			tap := wiretap.New()
			r.mu.Lock()
			r.all = append(r.all, tap)
			r.mu.Unlock()
			go func() {
				defer client.Close()
				server, err := tap.Dial("tcp", r.to, 10*time.Second)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					_, _ = io.Copy(server, client)
					server.Close()
				}()
				_, _ = io.Copy(client, server)
			}()
		}
	}()
	return nil
}

func (r *relay) close() { r.listener.Close() }

func (r *relay) taps() []*wiretap.Tap {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}
