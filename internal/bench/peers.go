package main

import (
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
	"zklock/internal/setting"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
)

// A rival is somebody's lock beside zk.Lock: ours, over sessions in this process, or
// other people's, in a process of its own.
type rival struct {
	name string
	ours contender                                                           // or
	join func(s stage, z *zktest.Zoo, server, path string, n int) peers.Peer // nil: it is ours
	at   *peers.Store                                                        // nil: at ZooKeeper
}

// inTurn is the turn of a lock as steps 1 to 4 offer it.
func inTurn(lock zktest.Locker) turn {
	return func(ctx context.Context) error {
		if err := lock.Lock(ctx); err != nil {
			return err
		}
		return lock.Unlock()
	}
}

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

// peers measures the locks of other people and all of ours, with few and with many
// contenders, each with a session or a connection of its own.
func (s stage) peers() {
	contenders, err := setting.Read("CONTENDERS", []int{1, 8, 32, 100}, "numbers from 1 to 200, such as 1,8,32,100", sizes)
	s.must(err)
	rounds, err := setting.Number("ROUNDS", 9, 1, 99)
	s.must(err)
	rivals := []rival{
		{name: "zk.Lock", ours: contender{open: overConn(clientLock)}},
		{name: "zk.Lock, once more", ours: contender{open: overConn(clientLock)}}, // what it differs by is noise
		{name: "step 1", ours: contender{open: overConn(func(c *zk.Conn, path string) turn { return inTurn(plainnode.NewEphemeral(c, path+"/lock")) })}},
		{name: "step 2", ours: contender{open: overConn(func(c *zk.Conn, path string) turn { return inTurn(sequentialspin.New(c, path)) })}},
		{name: "step 3", ours: contender{open: overConn(func(c *zk.Conn, path string) turn { return inTurn(childrenwatch.New(c, path)) })}},
		{name: "step 4", ours: contender{open: overConn(step4)}},
		{name: "step 5", ours: apart[4]},
		{name: "step 5, a Cohort", ours: together[3]},
		{name: "step 6, as a writer", ours: apart[6]},
	}
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
			rival{name: "Curator's mutex", join: func(s stage, z *zktest.Zoo, server, path string, n int) peers.Peer {
				return peers.Curator(z, s.T, server, "mutex", path, "", n)
			}},
			rival{name: "kazoo's Lock", join: func(s stage, z *zktest.Zoo, server, path string, n int) peers.Peer {
				return peers.Kazoo(z, s.T, server, path, "", n)
			}})
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
		return rival{name: name, at: store, join: func(s stage, z *zktest.Zoo, server, path string, n int) peers.Peer {
			return peers.KV(z, s.T, program, kind, server, strings.TrimPrefix(path, "/"), n)
		}}
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

// A runner lets a rival's contenders take turns for a while.
type runner func(d time.Duration) (peers.Turns, error)

// race measures all rivals with n contenders, round by round.
func (s stage) race(rivals []rival, n, rounds int) {
	const window = 100 * time.Millisecond // one lock's part of a round
	say("%d contenders, %d locks, %d rounds", n, len(rivals), rounds)
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Minute)
	defer cancel()
	rates := make([][]float64, len(rivals))
	unfair := make([][]float64, len(rivals)) // the longest turn, in mean turns
	s.on(func(s stage, z *zktest.Zoo) {
		z.Untapped, z.Ctx = true, ctx
		var runners []runner
		for _, r := range rivals {
			run, _ := s.bring(z, r, n, z.Servers()[0])
			runners = append(runners, run)
		}
		for round := range rounds {
			for j := range rivals {
				i := (round + j) % len(rivals) // nobody is always the first
				t, err := runners[i](window)
				s.must(err)
				rates[i] = append(rates[i], float64(t.N)/t.Took.Seconds())
				unfair[i] = append(unfair[i], float64(t.Longest)*float64(t.N)/float64(t.Together))
			}
		}
	})
	line("\n%d contenders, each with a session or a connection of its own, and %d rounds; longest: the longest turn, in mean turns", n, rounds)
	line("  %-36s %9s %7s %14s %9s %9s %7s %11s", "", "a second", "ratio", "", "longest", "requests", "writes", "reply bytes")
	for i, r := range rivals {
		var ratios []float64
		for round := range rates[i] {
			ratios = append(ratios, rates[i][round]/rates[0][round])
		}
		c := s.count(ctx, r, n)
		line("  %-36s %9.0f %7.2f %14s %9.1f %9.2f %7.2f %11.0f", r.name, median(rates[i]), median(ratios),
			fmt.Sprintf("%.2f to %.2f", slices.Min(ratios), slices.Max(ratios)), median(unfair[i]), c[0], c[1], c[2])
	}
}

// bring brings n contenders of a rival to a lock of their own.
func (s stage) bring(z *zktest.Zoo, r rival, n int, server string) (runner, []*zktest.Client) {
	if r.join == nil {
		sessions := n
		if r.ours.share {
			sessions = 1
		}
		turns, clients := s.join(z, r.ours, n, sessions)
		return func(d time.Duration) (peers.Turns, error) { return s.timed(z.Ctx, turns, d), nil }, clients
	}
	if r.at != nil {
		server = r.at.Address
	}
	peer := r.join(s, z, server, fmt.Sprintf("%s/lock-%08x", z.Root, rand.Uint32()), n)
	_, err := peer.Run(0)
	s.must(err)
	return peer.Run, nil
}

// timed is run that also tells how long the turns took.
func (s stage) timed(ctx context.Context, turns []turn, d time.Duration) (t peers.Turns) {
	var mu sync.Mutex
	timed := make([]turn, len(turns))
	for i, take := range turns {
		timed[i] = func(ctx context.Context) error {
			begin := time.Now()
			err := take(ctx)
			mu.Lock()
			defer mu.Unlock()
			t.Longest, t.Together = max(t.Longest, time.Since(begin)), t.Together+time.Since(begin)
			return err
		}
	}
	t.N, t.Took = s.run(ctx, timed, d)
	return t
}

// count tells what a hand-over takes: requests, writes and bytes of replies. The
// locks of ZooKeeper are listened to on the line, the other servers are asked.
func (s stage) count(ctx context.Context, r rival, n int) (each [3]float64) {
	s.on(func(s stage, z *zktest.Zoo) {
		z.Ctx = ctx
		relay := &relay{to: z.Servers()[0]}
		s.must(relay.listen())
		s.Cleanup(relay.close)
		run, clients := s.bring(z, r, n, relay.address)
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
		t, err := run(300 * time.Millisecond)
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
			each[i] /= float64(t.N)
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
