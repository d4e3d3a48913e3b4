package play

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	Part()
	zktest.Parallel = 5 // most have a browser that draws: with twelve on two processors each waited for the others
	zktest.Main(m)
}

// A player commands a service as its page does.
type player struct {
	*testing.T
	*service
	zoo     *zktest.Zoo
	address *url.URL
	stop    func() error // leaves nothing behind
}

// plays begins a service, and lays locks with so many clients each.
func plays(t *testing.T, keys string, clients int) *player {
	return playsOn(t, zktest.New(t), nil, "", keys, clients)
}

// playsOn plays on a server, with the exercises in a folder.
func playsOn(t *testing.T, z *zktest.Zoo, ensemble *zkserver.Ensemble, yours, keys string, clients int) *player {
	p := begins(t, z, ensemble, yours)
	for i, key := range strings.Split(keys, ",") {
		p.do(`{"do":"choose","board":%d,"lock":%q}`, i, key)
		p.until(i, key+" to be laid", func(b *side) bool { return b.Key == key && b.Dir != "" })
	}
	p.do(`{"do":"add","n":%d}`, clients)
	for i := range p.laid() {
		p.until(i, "all clients to have a session", func(b *side) bool { return b.count("idle") == clients })
	}
	return p
}

// begins begins a service, and lays nothing.
func begins(t *testing.T, z *zktest.Zoo, ensemble *zkserver.Ensemble, yours string) *player {
	s, stop, err := begin(context.Background(), "../../..", yours, z.Server, ensemble)
	require.NoError(t, err)
	s.mu.Lock()
	s.rest = time.Hour // on a busy machine a test takes long to do the next thing
	s.mu.Unlock()
	address, hangUp, err := s.listen()
	require.NoError(t, err)
	at, err := url.Parse(address)
	require.NoError(t, err)
	p := &player{t, s, z, at, stop}
	t.Cleanup(func() {
		hangUp()
		require.NoError(t, p.stop())
	})
	return p
}

// patience is how long the test may take.
func (p *player) patience(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	p.Cleanup(cancel)
	p.zoo.Ctx = ctx
}

// do posts a command, which has to be accepted.
func (p *player) do(format string, args ...any) {
	p.Helper()
	r := p.post(fmt.Sprintf(format, args...))
	require.Equal(p, http.StatusNoContent, r.StatusCode, r.Status)
}

func (p *player) post(command string) *http.Response {
	p.Helper()
	r, err := http.NewRequest("POST", "http://"+p.address.Host+"/do", strings.NewReader(command))
	require.NoError(p, err)
	r.Header.Set("Zklock-Token", p.address.Query().Get("token"))
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	text, _ := io.ReadAll(answer.Body)
	answer.Status += ": " + string(text)
	answer.Body.Close()
	return answer
}

// get gets what the page gets at a path.
func (p *player) get(path string) *http.Response {
	p.Helper()
	answer, err := http.Get("http://" + p.address.Host + path + "?" + p.address.RawQuery)
	require.NoError(p, err)
	p.Cleanup(func() { answer.Body.Close() })
	return answer
}

// page is all that a page receives when it is opened.
func (p *player) page() string { return p.news(&reader{told: stage.Nothing()}) }

// until waits for a side to be as it should be.
func (p *player) until(at int, what string, is func(*side) bool) {
	p.Helper()
	defer func() {
		if p.Failed() {
			p.Log(p.page())
		}
	}()
	p.zoo.Await(what, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		side := p.sides[at]
		if side != nil && side.building {
			p.zoo.Moved() // the compiler is at work, and no client yet
		}
		return side != nil && is(side)
	})
}

// says waits until the page has received this, in JSON.
func (p *player) says(text string) {
	p.Helper()
	p.zoo.Await("the page to receive "+text, func() bool { return strings.Contains(p.page(), text) })
}

func (b *side) count(is string) (n int) {
	for _, c := range b.clients {
		if c.Is == is {
			n++
		}
	}
	return n
}

// holdsAndWait lets client 0 lock, and then all others.
func (p *player) holdsAndWait() {
	p.Helper()
	p.do(`{"do":"lock","client":-1}`)
	for at := range p.laid() {
		p.until(at, "client 0 to hold, and the others to wait", func(b *side) bool {
			return b.are("holds") && b.count("waits") == len(b.clients)-1
		})
	}
}

func (b *side) warns(wrong stage.Wrong, clients ...int) bool {
	return slices.ContainsFunc(b.Banners, func(banner stage.Banner) bool {
		return banner.Wrong == wrong && slices.Equal(banner.Clients, clients)
	})
}

func TestClientsThatAreAddedWhileTheFirstLockIsBuilt(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	o, err := NewOpening(0, "W8", "4")
	require.NoError(t, err)
	require.NoError(t, p.goes(func() { p.start(o) }))
	p.until(0, "the left to be built", func(b *side) bool { return b.building })
	p.do(`{"do":"add","n":1}`)
	for at := range p.sides {
		p.until(at, "the client to have a session", func(b *side) bool { return b.count("idle") == 1 })
	}
}

func TestAHolderThatIsCutOff(t *testing.T) {
	t.Parallel()
	p := plays(t, "4,5", 2)
	p.holdsAndWait()
	p.do(`{"do":"cut","client":0}`)
	p.until(0, "step 4 to have a holder that does not know", func(b *side) bool {
		return b.are("cut off, believes it holds", "holds") &&
			b.warns(stage.NotTold, 0) && b.warns(stage.TwoInside, 0, 1)
	})
	p.until(1, "step 5 to tell", func(b *side) bool { return b.are("told that it lost the lock", "holds") })
	p.do(`{"do":"restore","client":0}`)
	p.says(`"clients":[0],"frame":{"did":{"en":"connected again"`)
}

func TestTheWireIsHeldAndLetGo(t *testing.T) {
	t.Parallel()
	p := plays(t, "3", 2)
	p.do(`{"do":"pace","pace":"pause"}`)
	p.do(`{"do":"lock","client":0}`)
	p.until(0, "a create to stand on the wire, which the server has not got", func(b *side) bool {
		return len(p.held) == 1 && len(b.Queue()) == 0
	})
	p.do(`{"do":"pace","pace":"step"}`)
	p.until(0, "its reply to stand on the wire", func(b *side) bool {
		return len(p.held) == 1 && len(b.Queue()) == 1 && b.are("waits")
	})
	p.do(`{"do":"pace","pace":"slow"}`)
	p.until(0, "client 0 to hold, after its list has passed slowly", func(b *side) bool {
		return b.are("holds") && len(p.held) == 0
	})
	p.do(`{"do":"pace","pace":"real"}`)

	p.do(`{"do":"delaylist","client":1}`)
	p.do(`{"do":"lock","client":1}`)
	p.says(`"what":"late","clients":[1]`)
	p.until(0, "client 1's list to stand on the wire", func(*side) bool { return len(p.held) == 1 })
	p.says(`"clients":[1],"frame":{"did":{"en":"listed lock: 2 names, and set a watch"`)
}

func TestEachStepAndEachMistakeCanBePlayed(t *testing.T) {
	t.Parallel()
	p := plays(t, "6", 2)
	for _, l := range locks.Choices {
		switch _, all := os.LookupEnv("ZKLOCK_CLICKS"); {
		case l.IsMine(), l.IsMistake() && !all && !slices.Contains([]string{"W2", "W12", "W27"}, l.Key):
			continue // what has to be built takes its time
		}
		p.patience(time.Minute)
		p.do(`{"do":"choose","board":0,"lock":%q}`, l.Key)
		p.until(0, l.Key+" to be laid", func(b *side) bool {
			return b.Key == l.Key && b.count("idle") == 2 || b.complaint != ""
		})
		p.do(`{"do":"lock","client":0}`)
		if l.Key == "W6" { // who came first when they were made
			p.do(`{"do":"lock","client":1}`)
			p.until(0, "one to hold with W6", func(b *side) bool {
				return b.count("holds") == 1 && b.count("waits") == 1
			})
			continue
		}
		p.until(0, l.Key+"'s client 0 to hold, or W20's to fail", func(b *side) bool {
			return b.are("holds") || l.Key == "W20" && b.are("got an error")
		})
		if l.Key == "W18" || l.Key == "W20" { // what they break is no wait
			continue
		}
		p.do(`{"do":"lock","client":1}`)
		switch l.Key {
		case "W2", "W3", "W10", "W16": // W17 takes two hosts
			p.until(0, "two inside with "+l.Key, func(b *side) bool { return b.warns(stage.TwoInside, 0, 1) })
		case "W12":
			p.says(`"clients":[1],"frame":{"did":{"en":"looked at `)
			p.do(`{"do":"giveup","client":1}`)
			p.until(0, "client 1 to give up", func(b *side) bool { return b.are("holds", "idle") })
			p.do(`{"do":"unlock","client":0}`)
			p.until(0, "client 0 to release", func(b *side) bool { return b.are("idle") })
			p.do(`{"do":"lock","client":0}`)
			p.until(0, "a znode that blocks everybody", func(b *side) bool {
				return b.warns(stage.LeftNode, 1)
			})
		case "W27":
			p.says(`"clients":[1],"frame":{"did":{"en":"looked at `)
			p.do(`{"do":"cut","client":1}`)
			p.until(0, "client 1 to hold, too", func(b *side) bool { return b.warns(stage.TwoInside, 0, 1) })
		default:
			p.until(0, l.Key+"'s client 1 to wait", func(b *side) bool { return b.are("holds", "waits") })
		}
	}
}

// Step 4 waits for itself when a holder calls Lock once more. The holder can give that up, and
// holds the lock as before.
func TestAHolderGivesUpLockingAgain(t *testing.T) {
	t.Parallel()
	p := plays(t, "4", 1)
	p.do(`{"do":"lock","client":0}`)
	p.until(0, "the client to hold", func(b *side) bool { return b.are("holds") })
	p.do(`{"do":"again","client":0}`)
	p.until(0, "a second znode", func(b *side) bool { return len(b.Queue()) == 2 })
	p.do(`{"do":"giveup","client":0}`)
	p.until(0, "the second znode to be deleted", func(b *side) bool { return len(b.Queue()) == 1 })
	p.until(0, "the client to hold", func(b *side) bool { return b.are("holds") && b.clients[0].may("again") == nil })
	p.do(`{"do":"unlock","client":0}`)
	p.until(0, "the client to release", func(b *side) bool { return b.are("idle") })
}

func TestThePageToKeep(t *testing.T) {
	t.Parallel()
	p := plays(t, "3,4", 2)
	p.holdsAndWait()
	p.do(`{"do":"unlock","client":0}`)
	for at := range 2 {
		p.until(at, "client 1 to hold", func(b *side) bool { return b.are("idle", "holds") })
	}
	text, err := io.ReadAll(p.get("/save").Body)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), `"action":{"do":"unlock","client":0}`), "phases")
	require.Equal(t, 2, strings.Count(string(text), `"frames":[[`), "stories")
}

func TestOnlyItsOwnPageIsAnswered(t *testing.T) {
	t.Parallel()
	p := plays(t, "3", 1)
	token := p.address.Query().Get("token")
	for what, c := range map[string]struct {
		method, path string
		host, origin string
		bears        string // in its header
		want         int
	}{
		"the page":                   {"GET", "/?token=" + token, "", "", "", 200},
		"by the name of the machine": {"GET", "/?token=" + token, "localhost:" + p.address.Port(), "", "", 200},
		"no token":                   {"GET", "/", "", "", "", 403},
		"a wrong token":              {"GET", "/?token=" + token[1:] + "A", "", "", "", 403},
		"events without the token":   {"GET", "/events", "", "", "", 403},
		"save without the token":     {"GET", "/save", "", "", "", 403},
		"another host":               {"GET", "/?token=" + token, "example.com", "", "", 403},
		"another page":               {"GET", "/events?token=" + token, "", "http://example.com", "", 403},
		"a command without a token":  {"POST", "/do", "", "", "", 403},
		"with its token in the path": {"POST", "/do?token=" + token, "", "", "", 403},
		"a command of another page":  {"POST", "/do", "", "null", token, 403},
		"a chapter":                  {"GET", "/book/step03.html", "", "", "", 200},
		"the book":                   {"GET", "/book/", "", "", "", 200},
		"a chapter for another host": {"GET", "/book/step03.html", "example.com", "", "", 403},
		"a chapter for another page": {"GET", "/book/step03.html", "", "http://example.com", "", 403},
		"no page of the book":        {"GET", "/book/step07.html", "", "", "", 404},
		"out of the book":            {"GET", "/book/..%2F..%2Fgo.mod", "", "", "", 404},
		"a command to the book":      {"POST", "/book/step03.html", "", "", "", 405},
		"the page below the book":    {"GET", "/book/../events", "", "", "", 403},
		"what is not there":          {"GET", "/etc?token=" + token, "", "", "", 404},
	} {
		t.Run(what, func(t *testing.T) {
			r, err := http.NewRequest(
				c.method,
				"http://"+p.address.Host+c.path,
				strings.NewReader(`{"do":"add","n":1}`),
			)
			require.NoError(t, err)
			r.Host = c.host
			for name, value := range map[string]string{"Origin": c.origin, "Zklock-Token": c.bears} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			answer.Body.Close()
			require.Equal(t, c.want, answer.StatusCode)
		})
	}
	require.Equal(t, "127.0.0.1", p.address.Hostname())
	for _, command := range []string{
		"",
		"{",
		`{"do":"rm"}`,
		`{"do":"rm","client":-1}`,
		`{"do":"lock","client":7}`,
		`{"do":"lock","client":-2}`,
		`{"do":"add","n":0}`,
		`{"do":"add","n":201}`,
		`{"do":"choose","board":2,"lock":"3"}`,
		`{"do":"choose","board":0,"lock":"../../bin"}`,
		`{"do":"choose","board":0,"lock":""}`,
		`{"do":"lesson","n":9}`,
		`{"do":"pace","pace":"fast"}`,
		`{"do":"server","n":1,"fault":"kill"}`,
		`{"do":"continue","client":0}`,
		`{"do":"delete","client":-1}`,
		`{"do":"lock","client":0,"path":"/x"}`,
		`{"do":"lock","client":0,"board":1}`} {
		r := p.post(command)
		require.Equal(t, http.StatusBadRequest, r.StatusCode, "%s %s", command, r.Status)
	}
	told, err := bufio.NewReader(p.get("/events").Body).ReadString('\n')
	require.NoError(t, err)
	moment := regexp.MustCompile(`"now":\d+`) // at which it was sent
	assert.Equal(t, moment.ReplaceAllString("data: "+p.page()+"\n", ""), moment.ReplaceAllString(told, ""))
	require.Len(t, p.sides[0].clients, 1)
}

func TestWhatAPanicSays(t *testing.T) {
	said := &tail{}
	fmt.Fprint(
		said,
		"hello\n",
		strings.Repeat("x", 9000),
		"\npanic: my mistake [recovered]\n\ngoroutine 7 [running]:\n\tlock.go:12\n",
	)
	require.Equal(t, "panic: my mistake [recovered]", said.panicked())
}
