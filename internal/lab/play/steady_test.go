package play

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// children counts the client processes that there are.
func children() int {
	pids, _ := exec.Command("pgrep", "-f", "-P", fmt.Sprint(os.Getpid()), os.Args[0]).Output()
	return strings.Count(string(pids), "\n")
}

// A minute of clicks at random leaves all as it should be: ZKLOCK_CLICKS=60s in .ci/night.
func TestClicksAtRandom(t *testing.T) {
	const clients = 8
	length := 8 * time.Second
	if asked := os.Getenv("ZKLOCK_CLICKS"); asked != "" {
		var err error
		length, err = time.ParseDuration(asked)
		require.NoError(t, err)
	}
	p := plays(t, "3,5", clients)
	p.patience(length + time.Minute)
	idle := goleak.IgnoreCurrent()
	require.Equal(t, 2*clients, children(), "processes")

	keys := []string{"1", "2", "3", "4", "5", "6", "zk"}
	dos := []string{
		"lock", "lock", "lock", "lock", "unlock", "unlock", "unlock", "again", "giveup", "giveup", "read", "put",
		"stop", "continue", "continue", "cut", "restore", "restore",
		"losecreate", "losedelete", "delaylist",
	}
	random := rand.New(rand.NewPCG(15, 15))
	clicks, refused := 0, 0
	var heaps []uint64
	for began := time.Now(); time.Since(began) < length; time.Sleep(10 * time.Millisecond) {
		command := fmt.Sprintf(`{"do":%q,"client":%d}`, dos[random.IntN(len(dos))], random.IntN(clients))
		switch random.IntN(100) {
		case 0:
			command = fmt.Sprintf(`{"do":"kill","client":%d}`, random.IntN(clients))
		case 1, 2:
			command = fmt.Sprintf(`{"do":"pace","pace":%q}`, []string{"real", "slow", "pause", "step"}[random.IntN(4)])
		case 3, 4, 5:
			command = `{"do":"pace","pace":"real"}`
		case 6:
			command = `{"do":"unlock","client":-1}`
		case 7:
			if random.IntN(3) == 0 {
				command = fmt.Sprintf(
					`{"do":"choose","board":%d,"lock":%q}`,
					random.IntN(2),
					keys[random.IntN(len(keys))],
				)
			}
		}
		if r := p.post(command); r.StatusCode == http.StatusBadRequest {
			refused++
		} else {
			require.Equal(t, http.StatusNoContent, r.StatusCode, "%s: %s", command, r.Status)
		}
		if clicks++; clicks%50 == 0 {
			p.page()
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heaps = append(heaps, m.HeapAlloc>>10)
		}
	}
	p.do(`{"do":"pace","pace":"real"}`)
	n := len(heaps) / 3
	t.Logf("» %d clicks, %d refused; the heap in KiB: %v", clicks, refused, heaps)
	require.Less(
		t,
		slices.Max(heaps[len(heaps)-n:]),
		2*slices.Max(heaps[:n])+8<<10,
		"KiB of heap, at the end and in the first third",
	)

	// All that are alive go on; then what the page says of each board is what the server says.
	for c := range clients {
		for _, do := range []string{"continue", "restore"} {
			p.post(fmt.Sprintf(`{"do":%q,"client":%d}`, do, c))
		}
	}
	alive := 0
	for at := range 2 {
		p.until(at, "the side to be laid", func(b *side) bool {
			return len(p.jobs) == 0 && len(b.clients) == clients && b.count("starting") == 0
		})
		crashed := 0
		p.until(at, "the page to have the server's queue", func(b *side) bool {
			var all []string
			for _, n := range b.Queue() {
				session := int64(0) // that of nobody
				if n.Owner >= 0 && !b.Znode {
					session = b.clients[n.Owner].Session
				}
				all = append(all, fmt.Sprintf("%s of %#x", n.Name, session))
			}
			slices.Sort(all)
			return slices.Equal(all, p.queue(b))
		})
		p.until(at, "who holds to be whose the first znode is", func(b *side) bool {
			crashed = b.count("crashed")
			inside, queue := b.count("holds")+b.count("reads"), b.Queue()
			if inside == 0 || len(b.Banners) > 0 { // nobody, or the page says that something is wrong
				return true
			}
			isSecondReader := inside > 1 && b.count("reads") > 0
			if isSecondReader || len(queue) == 0 || queue[0].Owner < 0 {
				return isSecondReader
			}
			return b.clients[queue[0].Owner].IsInside()
		})
		alive += clients - crashed
	}
	require.Equal(t, alive, children(), "processes, and clients that are alive")
	http.DefaultClient.CloseIdleConnections()
	p.leavesNothing()
	require.NoError(t, goleak.Find(idle, goleak.IgnoreTopFunction("github.com/go-zookeeper/zk.(*Conn).flushRequests")))
}

// queue asks the server for the znodes of a side's lock, with their sessions.
func (p *player) queue(b *side) (all []string) {
	paths := []string{b.Dir}
	if !b.Znode {
		paths = p.zoo.Names(b.Dir)
		for i, name := range paths {
			paths[i] = b.Dir + "/" + name
		}
	}
	for _, path := range paths {
		if session, there := p.zoo.Owner(path); there {
			all = append(all, fmt.Sprintf("%s of %#x", filepath.Base(path), session))
		}
	}
	slices.Sort(all)
	return all
}

// leavesNothing ends the service.
func (p *player) leavesNothing() {
	p.Helper()
	require.NotEmpty(p, p.zoo.Names(p.root))
	require.NoError(p, p.stop())
	p.stop = func() error { return nil }
	require.Zero(p, children(), "processes")
	require.NoFileExists(p, p.scratch)
	_, there := p.zoo.Owner(p.root)
	require.False(p, there, "the znode %s", p.root)
	p.zoo.Await("the server to have no sessions but this test's", func() bool {
		sessions, err := p.zoo.Sessions()
		return err == nil && len(sessions) == 1
	})
}

func TestNothingIsLeft(t *testing.T) {
	p := plays(t, "4,1", 3)
	p.holdsAndWait()
	p.do(`{"do":"pace","pace":"pause"}`)
	p.do(`{"do":"unlock","client":0}`)
	p.do(`{"do":"stop","client":1}`)
	p.do(`{"do":"kill","client":2}`)
	p.leavesNothing()
}

func TestThreeServersThatFail(t *testing.T) {
	t.Parallel()
	ensemble, err := zkserver.StartEnsemble(t.Context(), 3, "forceSnapshotSync=true")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ensemble.Stop()) })
	p := playsOn(t, zktest.NewOn(t, ensemble.Server), ensemble, "", "5", 3)
	p.patience(90 * time.Second)
	p.holdsAndWait()
	leads := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.IndexFunc(p.servers, func(s peer) bool { return s.Leader }) + 1
	}
	p.zoo.Await("a leader", func() bool { return leads() > 0 })
	first := leads()
	p.do(`{"do":"server","n":%d,"fault":"kill"}`, first)
	p.zoo.Await("another leader", func() bool { n := leads(); return n > 0 && n != first })
	p.do(`{"do":"unlock","client":0}`)
	p.says(`"what":"state","clients":[1],"state":"holds"`)
	p.do(`{"do":"server","n":%d,"fault":"restore"}`, first)
	other := first%3 + 1
	for _, fault := range []string{"stop", "cut"} {
		p.do(`{"do":"server","n":%d,"fault":%q}`, other, fault)
		p.do(`{"do":"server","n":%d,"fault":"restore"}`, other)
	}
	require.Equal(
		t,
		http.StatusBadRequest,
		p.post(fmt.Sprintf(`{"do":"server","n":%d,"fault":"restore"}`, other)).StatusCode,
	)
	p.zoo.Await("all to serve again", func() bool { return ensemble.Serving(p.zoo.Ctx) == nil && leads() > 0 })
}

// Without a majority no server answers. It ends anyway: the znodes are deleted with the servers.
func TestItEndsWithoutAMajority(t *testing.T) {
	t.Parallel()
	ensemble, err := zkserver.StartEnsemble(t.Context(), 3, "forceSnapshotSync=true")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ensemble.Stop()) })
	p := playsOn(t, zktest.NewOn(t, ensemble.Server), ensemble, "", "5", 1)
	p.do(`{"do":"lock","client":0}`)
	p.says(`"what":"state","clients":[0],"state":"holds"`)
	p.do(`{"do":"server","n":1,"fault":"stop"}`)
	p.do(`{"do":"server","n":2,"fault":"stop"}`)
	p.says(`"what":"state","clients":[0],"text":"the lock was lost`)
	ended := make(chan error, 1)
	go func() { ended <- p.stop() }()
	require.NoError(t, zktest.AwaitChan(p.zoo, "the service to end", ended))
	require.NoError(t, errors.Join(ensemble.Members[0].Resume(), ensemble.Members[1].Resume()))
	p.zoo.Await("all to serve again", func() bool { return ensemble.Serving(p.zoo.Ctx) == nil })
}
