package main

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/server/process"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/chapter"
)

func TestMain(m *testing.M) {
	process.Role("client", func(conductor process.Call) any { return crasher{begin(conductor)} })
	zktest.Main(m)
}

// A crasher is a Worker that ends too early if it is told so.
type crasher struct{ *Worker }

func (c crasher) Begin(place Assignment, told *[]Turn) error {
	if strconv.Itoa(place.Process) == os.Getenv("STORM_CRASH") {
		os.Exit(3)
	}
	return c.Worker.Begin(place, told)
}

// A short storm, over all that this package does.
func TestStorm(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 110*time.Second)
	defer cancel()
	s, err := run(ctx, settings{length: 15 * time.Second, seed: 42}, t.Output())
	require.NoError(t, err)
	s.print(t.Output())
	require.Zero(t, violations(s.breaches), "of steps 5 and 6: see above")
	chapter.SaysIn(t, "../../../docs/storm.md", "steps 5 and 6 in a storm of 15 seconds: no violation")

	// It was a storm, and they were all in it.
	require.Greater(t, count(s.faults, (*fault).happened), 8)
	for k, kind := range kinds {
		who := map[int]bool{}
		for _, turn := range s.Turns {
			if turn.Kind == k && turn.held() {
				who[turn.Client] = true
			}
		}
		require.NotEmpty(t, who, kind.Name)
		if trusted(k) {
			require.Len(t, who, clients, "%s: the clients that had the lock", kind.Name)
		}
	}
}

// A client process that ends too early ends the storm.
func TestAClientProcessThatEnds(t *testing.T) {
	t.Setenv("STORM_CRASH", "1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := run(ctx, settings{length: time.Minute, seed: 1}, t.Output())
	require.ErrorContains(t, err, "client process 1 has ended: exit status 3")
}

func TestTheSeedIsTheList(t *testing.T) {
	for _, deck := range [][]faultKind{serverDeck, clientDeck} {
		first := func(seed uint64) (all []Order) {
			for o := range list(seed, 0, deck) {
				if all = append(all, o); len(all) == 50 {
					break
				}
			}
			return all
		}
		require.Equal(t, first(42), first(42))
		require.NotEqual(t, first(42), first(43))
		for _, kind := range deck {
			comes := slices.ContainsFunc(first(42), func(o Order) bool { return o.What == kind.name })
			require.True(t, comes, kind.name)
		}
		for _, o := range first(42) {
			if o.Witnessed {
				require.True(t, o.Both, "%s: its witness has steps 5 and 6", o.What)
				require.Greater(t, o.For, sessionTimeout, "%s: the sessions have to end", o.What)
			}
		}
	}
}

func TestTheStoreRefusesWhatIsStale(t *testing.T) {
	var n number
	write := func(token int64, client int) bool { return n.admit(Access{Token: token, Client: client}) }
	read := func(token int64, client int) bool { return n.admit(Access{Token: token, Client: client, Read: true}) }
	require.True(t, write(5, 1))
	require.True(t, write(5, 1), "the same holder comes again")
	require.False(t, write(5, 2), "somebody else with the same token")
	require.True(t, write(7, 2))
	require.False(t, write(5, 1), "the token is smaller than one before")
	require.True(t, read(9, 3))
	require.True(t, read(8, 4), "a reader beside another")
	require.False(t, read(6, 5), "a reader from before a writer")
	require.False(t, write(8, 6), "a writer from before a reader")
	require.True(t, write(10, 7))
	require.Equal(t, 4, n.refused)
}

// A judge that finds nothing would make every storm a success.
func TestTheJudgeFindsWhatIsWrong(t *testing.T) {
	const step5, step6 = 1, 2
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	hold := func(kind, client, from, until int) Turn {
		return Turn{Kind: kind, Client: client, From: at(from), Until: at(until), At: at(until)}
	}
	reading := func(t Turn) Turn { t.Read = true; return t }
	wrote := func(t Turn) Turn { t.Wrote = true; return t }
	unlocked := func(t Turn, at time.Time) Turn { t.Unlocked, t.Lived = at, true; return t }
	refused := func(t Turn) Turn { t.RefusedAlive = t.Until; return t }
	stall := func(process, from, to int) Stall { return Stall{process, at(from), at(to)} }

	for name, c := range map[string]struct {
		holds  []Turn
		stalls []Stall
		number int64 // that the store has in the end

		want    string
		excused int
	}{
		"one after the other": {holds: []Turn{hold(step5, 1, 0, 10), hold(step5, 2, 11, 20)}},
		"two at one time": {
			holds: []Turn{hold(step5, 1, 0, 10), hold(step5, 2, 8, 20)},
			want:  oneHolder,
		},
		"one inside the other": {
			holds: []Turn{hold(step5, 1, 0, 100), hold(step5, 2, 50, 60)},
			want:  oneHolder,
		},
		"not next to one another": {
			holds: []Turn{hold(step5, 1, 0, 100), hold(step5, 2, 20, 30), hold(step5, 3, 50, 60)},
			want:  oneHolder,
		},
		"the first was stopped": {
			holds:   []Turn{hold(step5, 1, 0, 3050), hold(step5, 5, 2500, 3060)},
			stalls:  []Stall{stall(0, 10, 3000)},
			excused: 1,
		},
		"another process was stopped": {
			holds:  []Turn{hold(step5, 1, 0, 3050), hold(step5, 5, 2500, 3060)},
			stalls: []Stall{stall(2, 10, 3000)},
			want:   oneHolder,
		},
		"it went on long after it was stopped": {
			holds:  []Turn{hold(step5, 1, 0, 3500), hold(step5, 5, 2500, 3500)},
			stalls: []Stall{stall(0, 10, 3000)},
			want:   oneHolder,
		},
		"in while the first was stopping": {
			holds: []Turn{unlocked(hold(step5, 1, 0, 10), at(50)), hold(step5, 2, 20, 30)},
			want:  nobodyEarly,
		},
		"in after the first unlocked": {holds: []Turn{
			unlocked(hold(step5, 1, 0, 10), at(50)),
			hold(step5, 2, 51, 60),
		}},
		"the first was stopped, and lived": {
			holds:  []Turn{unlocked(hold(step5, 1, 0, 1050), at(1060)), hold(step5, 5, 500, 510)},
			stalls: []Stall{stall(0, 10, 1000)},
			want:   nobodyEarly,
		},
		"the second was stopped": {
			holds:   []Turn{unlocked(hold(step5, 1, 2500, 3060), at(3070)), hold(step5, 5, 3050, 3050)},
			stalls:  []Stall{stall(1, 10, 3045)},
			excused: 1,
		},
		"readers together": {holds: []Turn{
			reading(hold(step6, 1, 0, 10)),
			reading(hold(step6, 2, 5, 20)),
		}},
		"a writer among readers": {
			holds: []Turn{reading(hold(step6, 1, 0, 10)), hold(step6, 2, 5, 20)},
			want:  oneHolder,
		},
		"an increment each": {
			holds:  []Turn{wrote(hold(step5, 1, 0, 10)), wrote(hold(step5, 2, 11, 20))},
			number: 2,
		},
		"an increment lost": {
			holds:  []Turn{wrote(hold(step5, 1, 0, 10)), wrote(hold(step5, 2, 11, 20))},
			number: 1,
			want:   noLostIncrement,
		},
		"an increment doubled": {
			holds:  []Turn{wrote(hold(step5, 1, 0, 10))},
			number: 2,
			want:   noLostIncrement,
		},
		"a holder was refused": {holds: []Turn{refused(hold(step5, 1, 0, 10))}, want: risingTokens},
		"a holder was refused that was stopped": {
			holds:  []Turn{refused(hold(step5, 1, 0, 3050))},
			stalls: []Stall{stall(0, 10, 3000)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &storm{store: newStore()}
			require.NoError(t, s.Note(Record{Turns: c.holds, Stalls: c.stalls}, nil))
			s.numbers[c.holds[0].Kind].value = c.number
			s.conclude(at(10000))
			require.Equal(t, c.excused, s.excused[c.holds[0].Kind], "two holders are excused")
			if c.want == "" {
				require.Empty(t, s.breaches)
				return
			}
			require.Len(t, s.breaches, 1)
			require.Equal(t, c.want, s.breaches[0].property)
			var table strings.Builder
			s.print(&table)
			require.Contains(t, table.String(), kinds[c.holds[0].Kind].Name+": "+c.want)
			require.Equal(t, 1, violations(s.breaches))
			early, _ := s.judge(at(0))
			require.Empty(t, early, "not over yet at that moment")
		})
	}
}

// A write that another has overtaken is one increment less.
func TestAnOvertakenWriteIsABreach(t *testing.T) {
	s := newStore()
	use := func(a Access) int64 {
		var v Value
		require.NoError(t, s.Use(a, &v))
		return v.Number
	}
	require.Zero(t, use(Access{Client: 1}))
	require.Zero(t, use(Access{Client: 2}))
	require.EqualValues(t, 1, use(Access{Client: 1, Write: true}))
	require.Empty(t, s.breaches)
	require.EqualValues(t, 1, use(Access{Client: 2, Write: true}))
	require.Len(t, s.breaches, 1)
	require.Equal(t, noLostIncrement, s.breaches[0].property)
}

// A breach goes back to the last fault of its clients, else of the servers.
func TestCauses(t *testing.T) {
	begin := time.Now()
	happened := func(what string, reach reach, client, kind, sec int) *fault {
		at := begin.Add(time.Duration(sec) * time.Second)
		return &fault{
			Order:   Order{What: what, Reach: reach, Client: client, Kind: kind},
			Outcome: Outcome{what, at, at},
		}
	}
	weaker := happened("stopped in a handshake", aProcess, 9, 0, 2)
	weaker.Was = resetAtSome
	s := &storm{store: newStore(), faults: []*fault{
		happened("servers", theServers, -1, 0, 1),
		happened("client", aClient, 3, 0, 2),
		happened("lock", aLock, 3, 1, 3),
		happened("process", aProcess, 4, 0, 4),
		happened("witnessed", theServers, 8, 0, 4),
		weaker,
		{Order: Order{What: "nothing came of it", Reach: aClient, Client: 3}},
	}}
	cause := func(kind, client int) string {
		return s.cause(breach{kind: kind, clients: []int{client}, at: begin.Add(5 * time.Second)})
	}
	require.Equal(t, "client", cause(0, 3), "a fault of another lock's connection does not matter")
	require.Equal(t, "lock", cause(1, 3))
	require.Equal(t, "process", cause(0, 5), "a process has four clients")
	require.Equal(t, "witnessed", cause(0, 10), "it has a witness, and befalls all")
	require.Equal(t, resetAtSome, cause(0, 9), "what was weaker than ordered befalls one client")
	s.faults = nil
	require.Equal(t, "no fault near", cause(0, 3))
}

// Two servers that know nothing of one another disagree for good.
func TestServersThatDisagree(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := &storm{ensemble: &zkserver.Ensemble{}}
	var conns []*zk.Conn
	for id := 1; id <= 2; id++ {
		server, err := zkserver.StartWith(ctx, zkserver.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Stop()) })
		s.ensemble.Members = append(s.ensemble.Members, &zkserver.Peer{Server: server, ID: id})
		conn, err := zktest.Dial(server.Servers(), zktest.SessionTimeout, net.DialTimeout)
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		conns = append(conns, conn)
	}
	create := func(conn *zk.Conn, path string) {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	for _, conn := range conns {
		create(conn, "/storm")
		create(conn, "/storm/step6")
	}
	require.NoError(t, s.serversAgree(ctx))
	create(conns[1], "/storm/step6/ghost")
	require.ErrorContains(t, s.serversAgree(ctx), "/storm/step6/ghost is at member 2, and not at member 1")
}
