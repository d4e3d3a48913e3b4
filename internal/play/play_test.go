package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	part()
	zktest.Main(m)
}

// A player plays by what a page has: the address.
type player struct {
	*testing.T
	*service
	zoo     *zktest.Zoo
	address *url.URL
	stop    func() error // leaves nothing behind
}

// plays begins a service, and lays locks with so many clients each.
func plays(t *testing.T, keys string, clients int) *player {
	return playsOn(t, zktest.New(t), nil, keys, clients)
}

func playsOn(t *testing.T, z *zktest.Zoo, ensemble *zkserver.Ensemble, keys string, clients int) *player {
	return playsIn(t, "", z, ensemble, keys, clients)
}

// playsIn plays with the exercises in a folder.
func playsIn(t *testing.T, mine string, z *zktest.Zoo, ensemble *zkserver.Ensemble, keys string, clients int) *player {
	s, stop, err := begin(context.Background(), "../..", mine, z.Server, ensemble)
	require.NoError(t, err)
	address, hangUp, err := s.listen()
	require.NoError(t, err)
	at, err := url.Parse(address)
	require.NoError(t, err)
	p := &player{t, s, z, at, stop}
	t.Cleanup(func() {
		hangUp()
		require.NoError(t, p.stop())
	})
	for i, key := range strings.Split(keys, ",") {
		l, err := find(key)
		require.NoError(t, err)
		s.lay(i, l, clients, nil)
		p.untilBoard(i, "all clients to have a session", func(b seen) bool { return len(b.Rows) == clients && b.all("idle") })
	}
	return p
}

// patience is how long the test may take.
func (p *player) patience(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	p.Cleanup(cancel)
	p.zoo.Ctx = ctx
}

func (p *player) url(path string) string { return "http://" + p.address.Host + path }

// do posts a command, which has to be accepted.
func (p *player) do(format string, args ...any) {
	p.Helper()
	r := p.post(fmt.Sprintf(format, args...))
	require.Equal(p, http.StatusNoContent, r.StatusCode, r.Status)
}

func (p *player) post(command string) *http.Response {
	p.Helper()
	r, err := http.NewRequest("POST", p.url("/do"), strings.NewReader(command))
	require.NoError(p, err)
	r.Header.Set("Zklock-Token", p.address.Query().Get("token"))
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	text, _ := io.ReadAll(answer.Body)
	answer.Status += ": " + string(text)
	answer.Body.Close()
	return answer
}

// seen is a board as the page is told of it when it is loaded.
type seen struct {
	Lock     string
	Rows     []row
	Ls       []place
	Counters counters
	Log      []line
	Banners  []banner
	Store    store
	Build    string
	Story    struct {
		Clients map[int]struct {
			Name  string
			Moods []struct{ Is string }
		}
		Nodes   map[int]json.RawMessage
		Watches map[int][]int
		Frames  map[int][]int
	}
}

func (b seen) mood(client int) string {
	moods := b.Story.Clients[client].Moods
	if len(moods) == 0 {
		return ""
	}
	return moods[len(moods)-1].Is
}

func (b seen) all(mood string) bool { return b.count(mood) == len(b.Rows) }

func (b seen) count(mood string) (n int) {
	for i := range b.Story.Clients {
		if b.mood(i) == mood {
			n++
		}
	}
	return n
}

func (b seen) says(text string) bool {
	for _, l := range b.Log {
		if strings.Contains(l.Text, text) {
			return true
		}
	}
	return false
}

// snapshot loads all that there is.
func (p *player) snapshot() (boards []seen) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", p.url("/events?"+p.address.RawQuery), nil)
	require.NoError(p, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	defer answer.Body.Close()
	text, err := bufio.NewReader(answer.Body).ReadBytes('\n')
	require.NoError(p, err)
	var first struct{ Snapshot struct{ Boards []seen } }
	require.NoError(p, json.Unmarshal(bytes.TrimPrefix(text, []byte("data: ")), &first))
	return first.Snapshot.Boards
}

// until returns the left board when it is as it should be.
func (p *player) until(what string, is func(seen) bool) seen { return p.untilBoard(0, what, is) }

func (p *player) untilBoard(at int, what string, is func(seen) bool) (b seen) {
	p.Helper()
	defer func() {
		if p.Failed() {
			text, _ := json.MarshalIndent(b.Log, "", " ")
			p.Logf("the board: %s\n%s", b.Lock, text)
		}
	}()
	p.zoo.Await(what, func() bool {
		b = p.snapshot()[at]
		return is(b)
	})
	return b
}

// It is not parallel: the server counts for all.
func TestOneReleaseInStep3TellsAllWhoWait(t *testing.T) {
	p := plays(t, "3", 6)
	p.do(`{"do":"lock","client":-1}`)
	p.until("one holds and five wait", func(b seen) bool { return b.mood(0) == "holds" && b.count("waits") == 5 && len(b.Ls) == 6 })
	var before map[string]int64
	p.zoo.Await("the server to have a watch of each who waits", func() (settled bool) {
		var err error
		before, err = p.zoo.Mntr()
		return err == nil && before["zk_watch_count"] == 5
	})
	p.do(`{"do":"unlock","client":0}`)
	b := p.until("the next holds", func(b seen) bool { return b.mood(1) == "holds" && b.Counters.Notifications >= 5 })
	after, err := p.zoo.Mntr()
	require.NoError(t, err)
	require.EqualValues(t, 5, after["zk_sum_node_children_watch_count"]-before["zk_sum_node_children_watch_count"], "notifications, as the server counts them")
	require.Equal(t, 5, b.Counters.Notifications, "the same on the page")
	require.True(t, b.says("that the queue has changed."))
	require.Equal(t, place{"lock-0000000001", 1}, b.Ls[0])
}

// holdsAndWait lets client 0 lock, and then all others.
func (p *player) holdsAndWait() {
	p.Helper()
	n := len(p.snapshot()[0].Rows)
	p.do(`{"do":"lock","client":-1}`)
	for at := range p.here() {
		p.untilBoard(at, "client 0 to hold, and the others to wait", func(b seen) bool { return b.mood(0) == "holds" && b.count("waits") == n-1 })
	}
}

func (b seen) warns(property, text string) bool {
	for _, w := range b.Banners {
		if w.Property == property && strings.Contains(w.Text, text) {
			return true
		}
	}
	return false
}

func TestAKilledHolderLocksOutInStep1AndNotInStep2(t *testing.T) {
	t.Parallel()
	p := plays(t, "1,2", 3)
	p.holdsAndWait()
	p.do(`{"do":"kill","client":0}`)
	b := p.untilBoard(1, "the next to be let in by step 2", func(b seen) bool { return b.count("holds") == 1 && b.mood(0) == "crashed" })
	require.Equal(t, "holds", b.mood(1))
	p.untilBoard(1, "the end of the session to be told", func(b seen) bool { return b.says("The server ends the session of 0") })
	b = p.until("the banner on step 1", func(b seen) bool { return b.warns("a crashed holder's lock comes free", "lock blocks everybody: 0") })
	require.Zero(t, b.count("holds"))
	require.Equal(t, []place{{"lock", 0}}, b.Ls)
}

func TestALostCreateReplyBlocksStep4AndNotStep5(t *testing.T) {
	t.Parallel()
	p := plays(t, "4,5", 3)
	p.do(`{"do":"lock","client":0}`)
	for at := range 2 {
		p.untilBoard(at, "client 0 to hold", func(b seen) bool { return b.mood(0) == "holds" })
	}
	p.do(`{"do":"losecreate","client":1}`)
	p.do(`{"do":"lock","client":1}`)
	p.until("client 1's error", func(b seen) bool { return b.mood(1) == "got an error" })
	p.untilBoard(1, "client 1 to wait in step 5", func(b seen) bool { return b.mood(1) == "waits" && len(b.Ls) == 2 && len(b.Rows[1].Armed) == 0 })
	p.do(`{"do":"lock","client":2}`)
	p.until("client 2 to stand behind", func(b seen) bool { return len(b.Ls) == 3 })
	p.do(`{"do":"unlock","client":0}`)
	p.until("the banner on step 4", func(b seen) bool {
		return b.warns("a lost reply to create does no harm", "lock-0000000001 blocks everybody: it is 1's, which does not know it")
	})
	b := p.untilBoard(1, "client 1 to hold in step 5", func(b seen) bool { return b.mood(1) == "holds" })
	require.Empty(t, b.Banners)
}

func TestAPausedHolderWritesLate(t *testing.T) {
	t.Parallel()
	p := plays(t, "4,5", 2)
	p.holdsAndWait()
	p.do(`{"do":"stop","client":0}`)
	for at := range 2 {
		p.untilBoard(at, "client 1 to be let in", func(b seen) bool { return b.mood(1) == "holds" })
	}
	p.until("the banner: two inside", func(b seen) bool { return b.warns("one holder at a time", "two inside: each of 0, 1") })
	p.do(`{"do":"put","client":1}`)
	for at := range 2 {
		p.untilBoard(at, "client 1's write", func(b seen) bool { return len(b.Store.Log) == 1 && b.Store.Log[0].OK })
	}
	p.do(`{"do":"put","client":0}`)
	p.do(`{"do":"continue","client":0}`)
	b := p.until("the late write, which step 4 cannot prevent", func(b seen) bool { return len(b.Store.Log) == 2 })
	require.True(t, b.Store.Log[0].OK)
	b = p.untilBoard(1, "the late write in step 5", func(b seen) bool { return len(b.Store.Log) == 2 })
	require.False(t, b.Store.Log[0].OK, "the store's answer: %s", b.Store.Log[0].Text)
	p.untilBoard(1, "the holder to be told", func(b seen) bool { return b.mood(0) == "told that it lost the lock" })
}

func TestAHolderThatIsCutOff(t *testing.T) {
	t.Parallel()
	p := plays(t, "4,5", 2)
	p.holdsAndWait()
	p.do(`{"do":"cut","client":0}`)
	p.until("step 4 to have a holder that does not know", func(b seen) bool {
		return b.mood(0) == "cut off, believes it holds" && b.mood(1) == "holds" &&
			b.warns("the holder is told when the lock is lost", "0 believes") && b.warns("one holder at a time", "0, 1")
	})
	p.untilBoard(1, "step 5 to tell", func(b seen) bool { return b.mood(0) == "told that it lost the lock" && b.mood(1) == "holds" })
	p.do(`{"do":"mend","client":0}`)
	p.until("client 0 to connect again", func(b seen) bool { return b.says("0 has connected again") })
}

func TestTheWireIsHeldAndLetGo(t *testing.T) {
	t.Parallel()
	p := plays(t, "3", 2)
	p.do(`{"do":"pace","pace":"pause"}`)
	p.do(`{"do":"lock","client":0}`)
	onTheWay := func(b seen) (n int) {
		for _, f := range b.Story.Frames {
			if f[5] < 0 {
				n++
			}
		}
		return n
	}
	one := p.until("a create to stand on the wire", func(b seen) bool { return onTheWay(b) == 1 })
	require.Empty(t, one.Ls, "the server has not got it")
	p.do(`{"do":"pace","pace":"step"}`)
	p.until("its reply to stand on the wire", func(b seen) bool { return onTheWay(b) == 1 && len(b.Ls) == 1 })
	require.Equal(t, "waits", p.snapshot()[0].mood(0), "it does not know yet")
	p.do(`{"do":"pace","pace":"slow"}`)
	p.until("client 0 to hold, after its list has passed slowly", func(b seen) bool { return b.mood(0) == "holds" && onTheWay(b) == 0 })
	p.do(`{"do":"pace","pace":"real"}`)

	p.do(`{"do":"delaylist","client":1}`)
	p.do(`{"do":"lock","client":1}`)
	p.until("client 1's list to be late", func(b seen) bool { return b.says("The list for 1 comes late") && onTheWay(b) == 1 })
	p.until("client 1 to wait with a watch", func(b seen) bool { return len(b.Story.Watches) > 1 })
}

func TestEachStepAndEachMistakeCanBePlayed(t *testing.T) {
	t.Parallel()
	p := plays(t, "6", 2)
	for _, l := range locks {
		switch _, all := os.LookupEnv("ZKLOCK_CLICKS"); {
		case l.mine(), l.test != "" && !all && l.Key != "W2" && l.Key != "W12": // what has to be built takes its time
			continue
		}
		p.patience(time.Minute)
		p.do(`{"do":"choose","board":0,"lock":%q}`, l.Key)
		b := p.until(l.Key+" to be laid", func(b seen) bool { return b.Lock == l.Key && len(b.Rows) == 2 && b.all("idle") || b.Build != "" })
		require.Empty(t, b.Build)
		p.do(`{"do":"lock","client":0}`)
		if l.Key == "W6" { // who came first when they were made
			p.do(`{"do":"lock","client":1}`)
			p.until("one to hold with W6", func(b seen) bool { return b.count("holds") == 1 && b.count("waits") == 1 })
			continue
		}
		b = p.until(l.Key+"'s client 0 to hold, or W20's to fail", func(b seen) bool { return b.mood(0) == "holds" || l.Key == "W20" && b.mood(0) == "got an error" })
		if l.Key == "W18" || l.Key == "W20" { // what they break is no wait
			continue
		}
		p.do(`{"do":"lock","client":1}`)
		b = p.until(l.Key+"'s client 1 to be let in or to wait", func(b seen) bool { return b.mood(1) == "waits" || b.mood(1) == "holds" })
		switch l.Key {
		case "W2", "W3", "W10", "W16": // W17 takes two hosts
			p.until("two inside with "+l.Key, func(b seen) bool { return b.warns("one holder at a time", "0, 1") })
		case "W12":
			p.until("client 1 to stand in the queue", func(b seen) bool { return len(b.Ls) == 2 && len(b.Story.Watches) > 0 })
			p.do(`{"do":"giveup","client":1}`)
			p.until("client 1 to give up", func(b seen) bool { return b.mood(1) == "idle" })
			p.do(`{"do":"unlock","client":0}`)
			p.until("client 0 to release", func(b seen) bool { return b.mood(0) == "idle" })
			p.do(`{"do":"lock","client":0}`)
			p.until("a znode that blocks everybody", func(b seen) bool { return b.warns("giving up leaves nothing behind", "it is 1's") })
		default:
			require.Equal(t, "waits", b.mood(1), l.Key)
		}
	}
}

func TestThePageToKeep(t *testing.T) {
	t.Parallel()
	p := plays(t, "3,4", 2)
	p.holdsAndWait()
	p.do(`{"do":"unlock","client":0}`)
	for at := range 2 {
		p.untilBoard(at, "client 1 to hold", func(b seen) bool { return b.mood(1) == "holds" })
	}
	answer, err := http.Get(p.url("/save?" + p.address.RawQuery))
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	_, data, _ := strings.Cut(string(text), `<script type="application/json" id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var kept struct {
		Stories []struct {
			Step   string
			Frames [][]int
			Phases []struct{ Title string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(data), &kept))
	require.Len(t, kept.Stories, 2)
	require.Equal(t, "4", kept.Stories[1].Step)
	for _, s := range kept.Stories {
		require.NotEmpty(t, s.Frames)
		require.Equal(t, "Client 0: unlock", s.Phases[len(s.Phases)-1].Title)
	}
}

func TestOnlyItsOwnPageIsAnswered(t *testing.T) {
	t.Parallel()
	p := plays(t, "3", 1)
	token := p.address.Query().Get("token")
	for what, c := range map[string]struct {
		method, path string
		change       func(*http.Request)
		want         int
	}{
		"the page":                   {"GET", "/?token=" + token, nil, 200},
		"by the name of the machine": {"GET", "/?token=" + token, func(r *http.Request) { r.Host = "localhost:" + p.address.Port() }, 200},
		"no token":                   {"GET", "/", nil, 403},
		"a wrong token":              {"GET", "/?token=" + token[1:] + "A", nil, 403},
		"events without the token":   {"GET", "/events", nil, 403},
		"save without the token":     {"GET", "/save", nil, 403},
		"another host":               {"GET", "/?token=" + token, func(r *http.Request) { r.Host = "example.com" }, 403},
		"another page":               {"GET", "/events?token=" + token, func(r *http.Request) { r.Header.Set("Origin", "http://example.com") }, 403},
		"a command without a token":  {"POST", "/do", nil, 403},
		"with its token in the path": {"POST", "/do?token=" + token, nil, 403},
		"a command of another page": {"POST", "/do", func(r *http.Request) {
			r.Header.Set("Zklock-Token", token)
			r.Header.Set("Origin", "null")
		}, 403},
		"a chapter":         {"GET", "/chapter/3?token=" + token, nil, 200},
		"no chapter":        {"GET", "/chapter/..%2F..%2Fgo.mod?token=" + token, nil, 404},
		"nor one":           {"GET", "/chapter/7?token=" + token, nil, 404},
		"what is not there": {"GET", "/etc?token=" + token, nil, 404},
	} {
		t.Run(what, func(t *testing.T) {
			r, err := http.NewRequest(c.method, p.url(c.path), strings.NewReader(`{"do":"add","n":1}`))
			require.NoError(t, err)
			if c.change != nil {
				c.change(r)
			}
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			answer.Body.Close()
			require.Equal(t, c.want, answer.StatusCode)
		})
	}
	require.Len(t, p.snapshot()[0].Rows, 1, "clients: nobody has added one")
	require.Equal(t, "127.0.0.1", p.address.Hostname())
	for _, command := range []string{"", "{", `{"do":"rm"}`, `{"do":"lock","client":7}`, `{"do":"lock","client":-2}`, `{"do":"add","n":0}`, `{"do":"add","n":201}`,
		`{"do":"choose","board":2,"lock":"3"}`, `{"do":"choose","board":0,"lock":"../../bin"}`, `{"do":"choose","board":0,"lock":""}`, `{"do":"opening","n":9}`,
		`{"do":"pace","pace":"fast"}`, `{"do":"server","n":1,"fault":"kill"}`, `{"do":"continue","client":0}`, `{"do":"lock","client":0,"path":"/x"}`, `{"do":"lock","client":0,"board":1}`} {
		r := p.post(command)
		require.Equal(t, http.StatusBadRequest, r.StatusCode, "%s %s", command, r.Status)
	}
}
