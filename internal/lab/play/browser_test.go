package play

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/browser"
	"zklock/internal/zktest"
)

// A window is the page in a browser, and the service behind it.
type window struct {
	*browser.Browser
	player *player
}

// shows plays, and opens the page on the smallest screen that it is made for.
func shows(t *testing.T, keys string, clients int) *window {
	return plays(t, keys, clients).shows(clients)
}

func (p *player) shows(clients int) *window {
	w := &window{browser.Open(p.T, p.address.String(), 1024, 768), p}
	w.ready(clients)
	return w
}

// ready waits until all clients of the left board have a session and are idle.
func (w *window) ready(clients int) {
	w.Helper()
	w.Until(fmt.Sprintf(
		`(rows => rows.length === %d && rows.every((r) => r.cells[1].textContent === "idle"))(
			[...document.querySelectorAll("#clients tbody tr")])`,
		clients,
	))
}

// lay lays a lock on the left.
func (w *window) lay(key string, clients int) {
	w.Helper()
	w.Choose("#lock0", key)
	w.Until(fmt.Sprintf(`boards[0].is?.lock === %[1]q && location.hash === "#%[1]s"`, key))
	w.ready(clients)
}

// click chooses a client and presses a button for it.
func (w *window) click(client int, do string) {
	w.Helper()
	w.press(fmt.Sprintf(`[data-choose="%d"]`, client))
	w.press(fmt.Sprintf(`#commands [data-do=%s]`, do))
}

// press presses a button as soon as it can be pressed. The page does it, in the step that finds the button: a moment
// later it may have another one there, or bar it.
func (w *window) press(selector string) {
	w.Helper()
	w.Until(fmt.Sprintf(`(b => b !== null && !b.disabled && (b.click(), true))(document.querySelector(%q))`, selector))
}

// becomes waits until the list says of a client how it is, on the left and on the right.
func (w *window) becomes(client int, states ...string) {
	w.Helper()
	for i, state := range states {
		w.Until(fmt.Sprintf(
			`document.querySelector("#clients tbody").rows[%d]?.cells[%d]?.textContent.startsWith(%q)`,
			client,
			1+i,
			state,
		))
	}
}

// told is how many notifications of a queue's change the server has sent.
func (w *window) told() int64 {
	w.Helper()
	counters, err := w.player.zoo.Mntr()
	require.NoError(w, err)
	return counters["zk_sum_node_children_watch_count"]
}

func TestAReleaseInABrowser(t *testing.T) {
	w := shows(t, "3", 6)
	w.Do(chromedp.KeyEvent("L")) // all lock
	w.becomes(0, "holds")
	w.Until(`boards[0].story.watches.filter((x) => there(x, performance.now())).length === 6 - 1`)
	told := w.told()
	w.click(0, "unlock")
	w.becomes(1, "holds")
	w.Contains("#board0 [data-count=notifications]", "5")
	w.Contains("#board0 [data-count=requests]", "6")
	assert.EqualValues(t, 5, w.told()-told, "notifications, as the server counts them")
	w.Contains("#log", "got a notification: the children of lock changed")

	// The page holds no truth of its own: loaded again, it says the same. First the other waiters watch again, and all of
	// that is drawn and written.
	w.Until(`[2, 3, 4, 5].every((client) =>
		boards[0].story.watches.some((x) => x.client === client && there(x, performance.now())))`)
	w.Until(`!moving && !dirty`)
	all := func() (texts []string) {
		w.press("#board0 summary")
		w.Until(`document.querySelectorAll("#board0 details tbody tr").length === 6`)
		for _, s := range []string{
			"#board0 details tbody",
			"#board0 .tally",
			"#board0 .ls",
			"#clients tbody",
			"#log ol",
			"#count",
		} {
			texts = append(texts, w.Text(s))
		}
		return texts
	}
	before := all()
	w.Do(chromedp.Reload())
	w.becomes(1, "holds")
	assert.Equal(t, before, all())

	// The keyboard is enough: the holder, found and released.
	w.Do(chromedp.KeyEvent("h"), chromedp.KeyEvent("u"))
	w.becomes(2, "holds")
	w.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent("g"))
	w.becomes(2, "holds")
	w.Do(chromedp.KeyEvent("3")) // holds the wire
	w.Until(`document.querySelector("[data-pace=pause]").getAttribute("aria-pressed") === "true"`)
	w.Do(chromedp.KeyEvent("h"), chromedp.KeyEvent("u"))
	w.Contains("#held", "1 on the wire")
	w.Until(`boards[0].story.frames.some(f => f.to === Infinity)`)
	w.Do(chromedp.KeyEvent("1"))
	w.becomes(3, "holds")
}

func TestTheHolderIsKilledInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "1", 3)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.becomes(2, "waits")
	session := w.player.sides[0].clients[0].Session
	w.click(0, "kill")
	w.becomes(0, "crashed")
	w.player.zoo.Await("its session has ended", func() bool {
		sessions, err := w.player.zoo.Server.Sessions()
		_, lives := sessions[session]
		return err == nil && len(sessions) > 0 && !lives
	})
	w.Contains("#log", "The server has heard nothing from client 0 for 5 s, and ends its session.")
	w.Contains("#board0 .banners", "The broken promise: a crashed holder's lock is free again.")
	browser.Evaluate[any](w.Browser, `tried = boards[0].is.counters.requests`)
	w.Until(`boards[0].is.counters.requests > tried + 20`) // the others still try
	w.Says("#board0 .ls ol", "lock client 0")
	w.becomes(1, "waits")
	w.becomes(2, "waits")

	w.lay("2", 3)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.becomes(2, "waits")
	w.click(0, "kill")
	w.becomes(1, "holds")
	w.becomes(2, "waits")
	w.Contains("#log", "The server has heard nothing from client 0 for 5 s")
}

func TestALostReplyInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "4", 3)
	lost := func() {
		w.click(0, "lock")
		w.becomes(0, "holds")
		w.click(1, "losecreate")
		w.Until(`document.querySelector("#commands [data-do=losecreate]").getAttribute("aria-pressed") === "true"`)
		w.click(1, "lock")
		w.Contains("#log", "but the reply is lost: client 1 does not know it")
	}
	lost()
	w.becomes(1, "got an error")
	w.click(2, "lock")
	w.becomes(2, "waits")
	w.click(0, "unlock")
	w.Contains("#board0 .banners", "it belongs to client 1, which does not know of it "+
		"The broken promise: a lost reply to create does no harm.")
	w.becomes(2, "waits") // for a znode whose owner does not know it
	w.Until(`document.querySelector("#board0 .ls li").textContent.endsWith("client 1")`)

	w.lay("5", 3)
	lost()
	w.becomes(1, "waits")
	w.click(0, "unlock")
	w.becomes(1, "holds")
	w.Says("#board0 .banners", "")
}

func TestThePausedHolderInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "6", 1)
	w.press("header [data-do=lessons]")
	w.press("#start li:nth-child(5) button") // step 4 on the left, step 5 on the right
	w.Until(`document.querySelector("#lesson li.now > button[data-do]") !== null`)
	browser.Evaluate[any](w.Browser, `
		told = [];
		new MutationObserver(() => told.push($("clients").querySelector("tbody").rows[0].cells[1].textContent))
			.observe($("clients").querySelector("tbody"), { subtree: true, childList: true, characterData: true });
		null`)
	w.click(0, "stop")
	w.becomes(0, "stopped, believes it holds", "stopped, believes it holds")
	assert.Contains(t, browser.Evaluate[[]string](w.Browser, `told`), "stopped, holds", "while its session lives")
	w.becomes(1, "holds", "holds")
	w.Contains("#board0 .banners", "Clients 0 and 1 believe at the same time that they hold the lock")
	w.Contains("#board1 .banners", "Client 0 has lost the lock and is stopped: it will be notified when it continues")
	w.Until(`document.querySelectorAll("#board1 .banners p:not(.note)").length === 0`) // it breaks nothing
	w.click(1, "put")
	w.Contains("#board1 .store", "accepted")
	w.click(0, "put")
	w.click(0, "continue")
	w.Contains("#board0 .store", "client 0: accepted, too late") // what step 4 cannot prevent
	w.Until(`boards[0].stage.kept().value?.late === true && boards[1].stage.kept().value.late === false`)
	w.Contains("#board1 .store", "refused")
	w.player.until(1, "the older token to be refused", func(b *side) bool {
		log := b.Store.Log // newest first
		return len(log) == 2 && !log[0].OK && log[1].OK && log[0].Token < log[1].Token
	})
	w.becomes(0, "believes it holds", "knows that it lost the lock")
	w.Contains("#lesson", "Step 5: The store has refused the late write of client 0")
}

// Of a lock without tokens the page says what happened, and no word of tokens: what repairs it is the question.
func TestALockWithoutTokensIsShownWithoutTheWordInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "4", 2)
	w.press("#board0 summary")
	browser.Evaluate[any](w.Browser, `
		drawn = new Set();
		own = CanvasRenderingContext2D.prototype.fillText;
		CanvasRenderingContext2D.prototype.fillText = function (words, ...where) {
			drawn.add(words);
			own.call(this, words, ...where);
		};
		null`)
	for client, state := range []string{"holds", "waits"} {
		w.click(client, "lock")
		w.becomes(client, state)
	}
	w.click(0, "stop")
	w.becomes(1, "holds")
	w.click(1, "put")
	w.Contains("#log", "Client 1 writes to the store: accepted.")
	w.click(0, "put")
	w.click(0, "continue")
	w.Contains("#log", "Client 0 writes to the store: accepted, too late.")
	w.Contains("#board0 .store", "client 0: accepted, too late")
	w.Until(`drawn.has("The store: client 0's value") && drawn.has("Client 0: accepted, too late")`)
	assert.Empty(t, browser.Evaluate[[]string](w.Browser, `[document.body.innerText, ...drawn].filter((text) => /token/i.test(text))`))
}

func TestTheLearnersLockInABrowser(t *testing.T) {
	t.Parallel()
	repo, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(repo, "yours"), 0o755))
	folder, err := os.MkdirTemp(filepath.Join(repo, "yours"), "scratch") // inside of the module
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	w := playsOn(t, zktest.New(t), nil, folder, "1", 2).shows(2)
	w.lay("mine1", 2) // the starter is laid first
	yours := filepath.Join(folder, "step1", "lock.go")
	starter, err := os.ReadFile(yours)
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join(repo, "step01_plain_node", "lock.go"))
	require.NoError(t, err)
	save := func(text string) { require.NoError(t, os.WriteFile(yours, []byte(text), 0o644)) }
	w.Do(chromedp.KeyEvent("L")) // the starter lets everybody in
	w.Contains("#board0 .banners", "one holder at a time")
	save(strings.Replace(string(starter), "return nil", "return nothing", 1))
	w.Contains("#board0 .build", "undefined: nothing")
	printing := "func (l *Lock) Lock(ctx context.Context) error {"
	require.Contains(t, string(own), printing)
	save(
		strings.NewReplacer(printing, printing+"\n\tprintln(\"I am called\")").Replace(string(own)),
	)
	w.Until(`document.querySelector("#board0 .build").hidden`)
	w.ready(2)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.becomes(1, "waits")
	w.Says("#board0 .banners", "")
	w.Contains("#log", "Client 0 prints: I am called")
	kept, err := io.ReadAll(w.player.get("/save").Body)
	require.NoError(t, err)
	require.Contains(t, string(kept), `"znode":true`, "it is no directory on the page to keep")

	save(
		strings.NewReplacer("import (", "import (\n\t\"os\"", printing, printing+"\n\tos.Exit(3)").Replace(string(own)),
	)
	w.Until(`boards[0].is.building`)
	w.Until(`document.querySelector("#board0 .build").hidden`)
	w.ready(2)
	w.click(0, "lock")
	w.becomes(0, "crashed")
	w.Contains("#log", "Client 0 has ended by itself, and printed no error.")
}

// From a click to what it does on the page: of ten clients the holder releases, and
// the next one is seen to hold.
func TestAClickIsSeenSoon(t *testing.T) {
	w := shows(t, "4", 10)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.becomes(9, "waits")
	browser.Evaluate[any](w.Browser, `
		took = [];
		(async () => {
			const row = (i) => document.querySelector("#clients tbody").rows[i];
			const seen = async (i, is) => {
				while (!row(i).cells[1].textContent.startsWith(is)) await new Promise(requestAnimationFrame);
			};
			const quick = (i) => row(i).querySelector("[data-do]").click();
			for (let round = 0; round < 50; round++) {
				const holder = round % 10, next = (round + 1) % 10, began = performance.now();
				quick(holder);
				await seen(next, "holds");
				took.push(performance.now() - began);
				await seen(holder, "idle");
				quick(holder);
				await seen(holder, "waits");
			}
		})();
		null`)
	w.Until(`took.length === 50`)
	median := browser.Evaluate[float64](w.Browser, `took.sort((a, b) => a - b)[25]`)
	t.Logf("» ten clients, from a click on Unlock to the next holder on the page: median %.0f ms of 50", median)
	assert.Less(t, median, 2500.0, "a page that lags behind: four frames fly, one after the other, for 220 ms each")
}
