package explorer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/lab/browser"
	"zklock/internal/lab/locks"
)

// opens writes the book's page in a language, and opens it at a place.
func opens(t *testing.T, language, place string, width, height int) *browser.Browser {
	t.Helper()
	p, err := Network(language, Book{Home: "index.html", Next: "guide.html", Other: "other.html"})
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "network.html")
	file, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, p.Write(file))
	require.NoError(t, file.Close())
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(1_000_000), "bytes of the page")
	b := browser.Open(t, "file://"+name+place, width, height)
	browser.Evaluate[any](b, `void (pause = 0)`) // nobody reads what is shown here
	return b
}

// press presses signs on the board with the mouse, each when the one before has had its effect.
func press(b *browser.Browser, keys ...string) {
	b.Helper()
	for _, key := range keys {
		sign := fmt.Sprintf(`[data-key=%q]`, key)
		b.Until(fmt.Sprintf(`!isBusy && document.querySelector('%s') !== null`, sign))
		b.Do(chromedp.Click(chromedp.CSS(sign)))
	}
	b.Until(`!isBusy`)
}

// A reader wins a level with the mouse, sees how few choices there are, and goes on. What he has
// won is remembered.
func TestAWinWithTheMouseInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#W23", 1366, 768)
	b.Says("#asks b", "Can you make both hold it, where the recipe, on the right, would not?")
	b.Contains("#asks", "From a blog (lenshood, 2020).")
	isShown := browser.Evaluate[bool](b, `document.querySelector("#all").checkVisibility()`)
	assert.False(t, isShown, "all interleavings, before a win")
	b.Says(".goal small", "not found yet")

	press(b, "go-0", "go-0", "go-1")
	b.Says("#how", "Press to deliver. Or make one thing go wrong: ✂ loses a message; press A or B for the rest.")
	press(b, "client-1")
	b.Says("#how", "Choose what happens to B, or press elsewhere to cancel.")
	b.Do(chromedp.Click(chromedp.CSS("#asks"))) // anywhere else
	b.Until(`document.querySelector('[data-key="go-1-give-up"]') === null`)
	press(b, "client-1", "go-1-give-up")
	b.Contains("#board", "spent")
	b.Says("#how", "Fault spent: deliver the rest.")
	press(b, "go-1", "go-1", "go-1")
	b.Says("#how", "The end: take choices back, or begin again.")
	b.Contains("#says", "You broke it, in 7 choices: Two hold it.")
	seen := browser.Evaluate[[]bool](b, `[at("beads").offsetHeight < 50,
		at("next").getBoundingClientRect().bottom + scrollY <= innerHeight, at("link").checkVisibility()]`)
	assert.Equal(t, []bool{true, true, true}, seen, "the choices in one line, Next on the screen, beside Copy link")
	b.Contains(".goal.found small", "you: 7; fewest: 7 ★")
	b.Contains("#says", "B gave up and deleted its znode, but its Lock returned without an error: B believes that it holds the lock.")
	b.Contains("#board", "believes it holds") // its znode is gone
	b.Contains("#beside-says .right", "✓ Played on to the end, the recipe stays right")
	b.Contains("#second", "got an error")
	b.Contains("#counts", "1,920 interleavings, each played by the lock's real code on a real server: a column each")
	assert.Contains(t, browser.Evaluate[string](b, `location.hash`), "#W23/ApApBpBgBpBpBp")

	b.Do(chromedp.Click(chromedp.CSS("#next")))
	b.Contains("#asks", "Again: can you make both hold it")
	b.Contains(`#levels [data-key="W23"]`, "✓")
	b.Do(chromedp.Click(chromedp.CSS(`#levels [data-key="W23"]`)))
	b.Contains(".goal.found small", "you: 7; ")
}

// Each choice can be made with the keyboard alone: the focus stays on the board.
func TestAWinWithTheKeyboardInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	types := func(wants string, keys ...string) {
		for _, key := range keys {
			b.Do(chromedp.KeyEvent(key))
		}
		b.Until(`!isBusy`)
		b.Until(fmt.Sprintf(`document.activeElement.dataset.key === %q`, wants))
	}
	browser.Evaluate[any](b, `document.getElementById("theme").focus()`)
	types("go-0", kb.Tab)
	hold := `document.activeElement.dispatchEvent(
		new KeyboardEvent("keydown", { key: "Enter", repeat: true, bubbles: true })), isBusy`
	assert.False(t, browser.Evaluate[bool](b, hold), "a key that is held")
	types("go-0", kb.Enter) // A creates its znode
	b.Contains("#says", "A's znode is 0.")
	types("turn-0", kb.Tab)
	b.Until(`document.activeElement.querySelector("title").textContent === "lose reply"`)
	types("go-0-lose-reply", kb.Enter) // of a read, no request is lost: that would be the same
	types("turn-0", kb.Escape)
	browser.Evaluate[any](b, `document.querySelector('[data-key="go-0"]').focus()`)
	types("go-0", kb.Enter) // A lists the queue
	b.Contains("#board", "HOLDS the lock")
	types("client-0", kb.Tab)
	types("go-1", kb.Tab)
	types("go-1", " ") // B creates its znode
	types("turn-1", kb.Tab)
	types("client-1", kb.Tab)
	types("go-1-crash", kb.Enter)
	types("client-1", kb.Escape)
	types("go-0", kb.Backspace)
	types("client-0", kb.Tab)
	types("go-0-crash", kb.Enter)
	types("go-0-expire", kb.Tab)
	b.Do(chromedp.KeyEvent(kb.Enter)) // A's session expires, while A holds the lock
	b.Contains("#board", "believes it holds")
	types("go-1", kb.Tab)
	types("go-1", kb.Enter)           // B creates its znode
	b.Do(chromedp.KeyEvent(kb.Enter)) // B lists the queue
	b.Contains("#says", "You broke it, in 5 choices: Two hold it.")
	b.Until(`document.activeElement.id === "next"`)

	// A key that is held, or pressed too often, does not run through the win.
	stays := browser.Evaluate[[]bool](b, `(() => {
		const key = new KeyboardEvent("keydown", { key: "Enter", repeat: true, cancelable: true });
		const isHeld = at("next").dispatchEvent(key);
		endedAt = performance.now();
		at("next").click();
		return [isHeld, level.key === "4"];
	})()`)
	assert.Equal(t, []bool{false, true}, stays)
	b.Until(`performance.now() - endedAt >= HASTE`)
	types("go-0", kb.Enter) // the first chip of the next level
	b.Contains("#asks", "From a blog (lenshood, 2020).")

	// At an end that is no win, the choices can be taken back.
	browser.Evaluate[any](b, `void (path = rest(game, 0).slice(0, -1), played = path.length, show("go-0"))`)
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Contains("#says", "It held: ")
	b.Until(`document.activeElement.id === "undo"`)
}

// The lock that nobody breaks says for how many clients and faults that is, and leads to what is left.
func TestTheScopeOfTheRepairedLockInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	b.Until(`!at("limits").checkVisibility()`)
	b.Do(chromedp.Click(chromedp.CSS(`#levels [data-key="5"]`)))
	b.Contains("#asks", "With two clients and one fault, nobody has broken this one.")
	b.Until(`!at("limits").checkVisibility() && !at("on").checkVisibility() && !at("finale").checkVisibility()`)
	tick := `document.querySelector('#levels [data-key="5"] i').textContent`
	assert.Empty(t, browser.Evaluate[string](b, tick), "before the level was played")
	isOpen := func(text string) bool {
		return browser.Evaluate[bool](b, fmt.Sprintf(`[...document.querySelectorAll(".goal small")].every((e) => e.textContent === %q)`, text))
	}
	ends := func() {
		b.Until(`at("limits").checkVisibility()`)
		b.Until(`at("limits").querySelector("a").getAttribute("href") === "limits.html"`)
		b.Until(`at("on").checkVisibility() && at("on").getAttribute("href") === "guide.html"`)
		b.Until(`!at("give").checkVisibility() && !at("every").checkVisibility()`)
		b.Until(`!document.querySelector("footer").checkVisibility()`) // one way to the book is enough
		assert.True(t, isOpen("cannot happen ✓"))
		b.Contains("#sound", "none is wrong.")
		// The number is that of the paths through the data, counted in another way than the page does.
		assert.Equal(t, browser.Evaluate[string](b, `(() => {
			let ends = 0;
			const todo = [0];
			while (todo.length) {
				const next = game.moves(todo.pop()).map((m) => m.to);
				if (next.length) todo.push(...next); else ends++;
			}
			return "✓ " + ends.toLocaleString("en") + " interleavings of 2 clients with one fault: none is wrong.";
		})()`), b.Text("#sound"))
		assert.Equal(t, "✓", browser.Evaluate[string](b, tick))
	}
	// run plays a run to its end, from a first choice on.
	run := func(first string) {
		browser.Evaluate[any](b, fmt.Sprintf(`void (enter("5"), path = spelled(%q), path = [...path, ...rest(game, path.at(-1).to)].slice(0, -1),
			played = path.length, show(), go(moves().find((m) => !isFault(m))))`, first))
		b.Until(`!isBusy`)
	}
	run("Ap")
	b.Contains("#says", "It held: A is done; B is done. The fault is not spent. "+
		"Your tries: 1 of 3. After the last, the page shows all 4,182 ways to play.")
	b.Says("#every", "Give up? See all 4,182 ways to play")
	assert.True(t, isOpen("not found yet"), "after one run")
	b.Until(`!at("finale").checkVisibility() && !at("all").checkVisibility()`)
	b.Do(chromedp.Click(chromedp.CSS("#every")))
	ends()
	b.Until(`document.activeElement.id === "icicle"`)
	isSeen := browser.Evaluate[bool](b, `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(at("columns").getBoundingClientRect())`)
	assert.True(t, isSeen, "what was asked for is on the screen")
	b.Until(`at("counts").getBoundingClientRect().bottom <= at("finale").getBoundingClientRect().top`)
	b.Until(`at("sound").checkVisibility() &&
		at("sound").getBoundingClientRect().bottom <= at("columns").getBoundingClientRect().top`)
	b.Contains("#met", "○ the recipe: not found yet")

	// So it is after the third run to an end. The same run counts once. It is remembered.
	browser.Evaluate[any](b, `void localStorage.clear()`)
	for _, first := range []string{"Ap", "Ap", "Bp", "Ap"} {
		run(first)
		assert.True(t, isOpen("not found yet"), first)
	}
	run("Al")
	ends()
	browser.Evaluate[any](b, `void enter("4")`)
	b.Until(`!at("finale").checkVisibility() && !at("on").checkVisibility()`)
	browser.Evaluate[any](b, `void enter("5")`)
	ends()
}

// Beside the repaired lock, the recipe breaks by the same choices: each of its wrong ends is met in this way, and the
// board shows it at once.
func TestTheRecipeBreaksBesideTheRepairedLockInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#5", 1366, 768)
	seen := browser.Evaluate[struct{ Runs, Other, Recipes, Met int }](b, `(() => {
		const [five, four] = [games["5"], games["4"]], seen = { Runs: 0, Other: 0, Recipes: 0, Met: 0 };
		const runs = (g, see) => {
			const visit = (path) => {
				const all = g.moves(path.at(-1)?.to ?? 0);
				for (const m of all) visit([...path, m]);
				if (!all.length) see(path);
			};
			visit([]);
		};
		const wrongOf = (g, path) => g.end(path.at(-1).to).wrong.join();
		const whole = (g, path, other) => {
			const all = beside(g, path, other).flatMap((a) => a.moves);
			return [...all, ...rest(other, all.at(-1).to)];
		};
		runs(five, (path) => {
			seen.Runs++;
			if (faultOf(whole(five, path, four)) !== faultOf(path)) seen.Other++;
		});
		runs(four, (path) => {
			if (!wrongOf(four, path)) return;
			seen.Recipes++;
			if (wrongOf(four, whole(five, whole(four, path, five), four)) === wrongOf(four, path)) seen.Met++;
		});
		return seen;
	})()`)
	assert.Equal(t, 4182, seen.Runs)
	assert.Zero(t, seen.Other, "runs whose fault the recipe does not meet")
	assert.Equal(t, 110, seen.Recipes, "wrong ends of the recipe")
	assert.Equal(t, 110, seen.Met, "of these, by the choices of a run of the repaired lock")

	b.Says("#beside-title", "The same choices with the recipe")
	browser.Evaluate[any](b, `void (path = spelled("ApApAxBpBp"), played = path.length, show())`)
	b.Contains("#beside-says .bad", "This breaks the recipe: Two hold it.")
	b.Contains("#second", "believes it holds")
	b.Contains("#board", "stopped: no connectionconnection lost")
}

// The lock that nobody breaks begins with ideas: what broke the others is played here, with its fault, and holds. This is
// no try of the reader's.
func TestTheIdeasForTheLastLockInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#5", 1366, 641)
	b.Says("#says", "Your tries: 0 of 3. After the last, the page shows all 4,182 ways to play.")
	b.Until(`!at("ideas").checkVisibility()`) // nothing was won yet
	browser.Evaluate[any](b, `void (data.levels.slice(0, 4).forEach((l) => store.set("zklock-network-" + l.key, '{"0":9}')), show())`)
	b.Says("#ideas", "Try here what broke: the recipea blog's lock51CTO's lock")
	b.Until(`at("ideas").getBoundingClientRect().bottom <= innerHeight`)
	for i, fault := range []string{"expire", "give-up", "lose-reply getChildren"} {
		browser.Evaluate[any](b, fmt.Sprintf(`void at("ideas").children[%d].click()`, i))
		b.Until(`!at("ideas").checkVisibility()`) // while it is played
		b.Until(`!isBusy && !moves().length`)
		assert.Equal(t, fault, browser.Evaluate[string](b, `faultOf(mine())`))
		b.Contains("#says", "It held: ")
		b.Contains("#says", "Your tries: 0 of 3.")
		b.Until(`at("ideas").checkVisibility() && !at("every").hidden`)
	}
	b.Until(`!at("finale").checkVisibility()`)

	// Whoever gives up after these has seen the level, and is asked for no tries.
	b.Do(chromedp.Click(chromedp.CSS("#every")))
	b.Until(`at("finale").checkVisibility()`)
	b.Contains(`#levels [data-key="5"]`, "✓")
	b.Contains("#says b.right", "It held: ")
	assert.NotContains(t, b.Text("#says"), "Your tries")
}

// A client whose session ended is drawn without a wire on both boards, until the server has answered it again.
func TestALostConnectionIsDrawnInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	browser.Evaluate[any](b, `void (path = spelled("ApApBpAx"), played = path.length, show())`)
	for _, board := range []string{"board", "second"} {
		b.Contains("#"+board, "connection lost")
		cut := fmt.Sprintf(`[...document.querySelectorAll("#%s .wire")].map((e) => e.hasAttribute("stroke-dasharray"))`, board)
		assert.Equal(t, []bool{true, false}, browser.Evaluate[[]bool](b, cut), board)
		isOnWire := fmt.Sprintf(`(({ top, bottom }, client, server) => top > client.bottom && bottom < server.top)(
			...[".cut", ".client", ".server"].map((e) => document.querySelector("#%s " + e).getBoundingClientRect()))`, board)
		assert.True(t, browser.Evaluate[bool](b, isOnWire), "where it is said: %s", board)
	}
	b.Contains("#board", "A finishes")
	press(b, "go-0") // its Unlock has a request, which nobody has answered yet
	b.Contains("#board", "connection lost")
	wires := `document.querySelectorAll("#board .wire[stroke-dasharray]").length`
	assert.Equal(t, 1, browser.Evaluate[int](b, wires))
	press(b, "go-0")
	b.Contains("#board", "connected again: new session")
	assert.NotContains(t, b.Text("#board"), "connection lost")
	assert.Zero(t, browser.Evaluate[int](b, wires))

	// So it is for a client that waits.
	browser.Evaluate[any](b, `void (enter("W19"), path = spelled("ApBpApBx"), played = path.length, show())`)
	b.Contains("#board", "wants the lock")
	b.Contains("#board", "connection lost")
	b.Contains("#second", "delete 1: gone already")
	assert.Equal(t, 1, browser.Evaluate[int](b, wires))
	press(b, "go-1")
	b.Contains("#board", "connected again: new session")
	assert.Zero(t, browser.Evaluate[int](b, wires))

	// A client that has stopped does not finish: it calls Unlock.
	browser.Evaluate[any](b, `void (enter("5"), path = spelled("ApApAx"), played = path.length, show())`)
	b.Says(`#board [data-key="go-0"] text`, "A calls Unlock")
}

// What breaks both locks is not what the level asks for. A waiter that nobody wakes is explained.
func TestWhatIsSaidOfAWinInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#W23/ApApBpAxBp", 1366, 768)
	b.Contains("#says", "Not yet: both hold it, but so they do with the recipe.")
	b.Says("#board .stamp", "✕ Two hold it: as with the recipe")
	outline := `getComputedStyle(at("board")).outlineStyle`
	assert.Equal(t, "dashed", browser.Evaluate[string](b, outline), "it is no win")
	browser.Evaluate[any](b, `void enter("W19", "ApAxApBpBp")`)
	b.Contains("#says", "A's list failed, so A did not know which znode is before its own")
	assert.Equal(t, "solid", browser.Evaluate[string](b, outline), "a win")
	browser.Evaluate[any](b, `void enter("W19", "ApBpApBlBp")`)
	b.Contains("#says", "B's list failed, so B did not know which znode is before its own")
	browser.Evaluate[any](b, `void enter("4", "AlBpBpBp")`)
	b.Contains("#says", "A is alive, so its session does not end, and nobody deletes that znode, and B waits for it. The repair: before an error is returned, look in the queue")
	b.Says("#code ins", "+ mine, err := l.find(prefix)")
	browser.Evaluate[any](b, `void enter("4", "ApApAuArBpBpBp")`)
	b.Contains("#says", "A's delete was lost on its way.")
	b.Says("#code ins", "+ for {")
	// What breaks the first lock breaks the half repaired one, which says so.
	browser.Evaluate[any](b, `void enter("4", "ApApBpAxBp")`)
	b.Contains("#says", "The link breaks it, in 5 choices: Two hold it.")
	b.Contains("#says", "A knows only that its connection is lost. The repair: no connection, no lock.")
	browser.Evaluate[any](b, `void enter("5.5", "ApApBpAxBp")`)
	b.Contains("#says", "The link breaks it, in 5 choices: Two hold it.")
	b.Contains("#says", "The moves of level 1 win here too: asking again does not help, because A's Lock returned")
	b.Until(`at("next").hidden`) // they are not what the level asks for
	browser.Evaluate[any](b, `void enter("5.5", "ApApBpAuArApBpBuBp")`)
	b.Contains("#says", "The link finds it, in 9 choices.")
	b.Contains("#next", "Your turn: the repaired lock →")

	browser.Evaluate[any](b, `void enter("W23")`)
	b.Do(chromedp.Click(chromedp.CSS("#give summary")))
	b.Contains("#hint", "A client that waits can stop waiting.")
	b.Contains("#way", "It is 7 choices from here.")
	press(b, "client-0", "go-0-crash")
	b.Says("#way", "Out of reach from here: take a choice back.")
	b.Says(".goal small", "out of reach from here")
	b.Do(chromedp.Click(chromedp.CSS("#undo")))
	press(b, "go-0")
	b.Says("#way", "It is 6 choices from here.")
	b.Contains(".goal small", "not found yet")
	b.Do(chromedp.Click(chromedp.CSS("#answers button")))
	b.Contains(".goal small", "the fewest: ")
}

// A link shows its path, which is no win of the reader's, and asks him to break the next lock.
func TestALinkInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4/ApApBpAxBp", 1366, 768)
	b.Contains("#says", "The link breaks it, in 5 choices: Two hold it.")
	b.Says("#next", "Your turn: a blog's lock →")
	b.Until(`at("link").hidden`) // he has it
	b.Contains("#beside-says .right", "✓ Played on to the end, the repaired lock stays right")
	b.Says(".goal small", "not found yet")

	// His own path begins where he takes it up.
	press(b, "bead-0")
	for range 2 {
		b.Do(chromedp.KeyEvent(kb.ArrowRight))
	}
	b.Until(`document.activeElement.dataset.key === "bead-2"`)
	b.Contains("#board", "one fault")
	b.Contains("#says", "From the link: choice 3 of 5.")
	press(b, "go-1")
	assert.NotContains(t, b.Text("#says"), "From the link")
	b.Contains("#says", "B has read the queue: 0 is before its 1.")
	assert.Equal(t, "#4/ApApBpBp", browser.Evaluate[string](b, `location.hash`))

	// What comes is said before it comes, and while it comes.
	browser.Evaluate[any](b, `void (said = [], new MutationObserver(() => said.push(at("says").textContent))
		.observe(at("says"), { childList: true }), enter("4", "ApApBp"))`)
	b.Until(`!isBusy && played === 3`)
	assert.Equal(t, []string{
		"From the link: 3 choices. Watch.",
		"From the link: choice 1 of 3.A's znode is 0.",
		"From the link: choice 2 of 3.A has read the queue: its 0 is the first. A holds the lock.",
		"From the link: choice 3 of 3.B's znode is 1.This is all. Go on from here, or begin again.",
	}, slices.Compact(browser.Evaluate[[]string](b, `said`)))
}

// After a reload, and in the other language, the reader's own run is there at once: it is no link, and what it wins is
// his.
func TestAReloadInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	press(b, "go-0", "go-0", "go-1")
	b.Do(chromedp.Reload())
	b.Contains("#says", "B's znode is 1.")
	assert.NotContains(t, b.Text("#says"), "From the link")
	assert.Equal(t, "#4/ApApBp", browser.Evaluate[string](b, `location.hash`))
	b.Do(chromedp.Click(chromedp.CSS("#undo")))
	press(b, "go-1", "client-0", "go-0-expire", "go-1")
	b.Do(chromedp.Reload())
	b.Contains("#says", "You broke it, in 5 choices: Two hold it.")

	browser.Evaluate[any](b, `void (location.hash = "#4/ApAp")`) // somebody else's
	b.Contains("#says", "From the link")
}

// The page says what it says in Chinese.
func TestThePageInChineseInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "zh-CN", "#4/ApApBpAxBp", 390, 844)
	b.Contains("#says", "这个链接攻破了它，用了 5 次选择：两个客户端同时持有锁。")
	b.Contains("#next", "轮到你了：博客里的锁")
	english := browser.Evaluate[string](b, `(at("code").remove(), document.body.innerText).replace(
		/zklock|ZooKeeper|51CTO|znode|English|Unlock|\b[AB]\b/g, "").match(/[A-Za-z]{2,}.*/)?.[0] ?? ""`)
	assert.Empty(t, english, "what is not said in Chinese")
}

// On a phone nothing is wider than the screen, what is pressed is large enough, and what is read, too.
func TestThePageOnAPhoneInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4/ApApBpAxBp", 390, 844)
	b.Contains("#says", "The link breaks it, in 5 choices")
	assert.LessOrEqual(t, browser.Evaluate[int](b, `document.documentElement.scrollWidth`), 390)
	for _, board := range []string{"board", "second"} {
		smallest := browser.Evaluate[float64](b, fmt.Sprintf(`((board) => {
			const scale = board.getBoundingClientRect().width / board.viewBox.baseVal.width;
			const sizes = [...board.querySelectorAll("text")].map((t) => parseFloat(getComputedStyle(t).fontSize));
			return scale * Math.min(...sizes);
		})(document.getElementById(%q))`, board))
		assert.GreaterOrEqual(t, smallest, 12.0, "the smallest text of the %s, in pixels", board)
	}
	browser.Evaluate[any](b, `void enter("4")`)
	for _, board := range []string{"board", "second"} { // the rule is on both, before anything happens, and fits
		b.Contains("#"+board, "empty queue: its lowest number holds the lock")
		wide := browser.Evaluate[float64](b, fmt.Sprintf(`((board) => Math.max(...[...board.querySelectorAll("text")]
			.map((t) => t.getBBox().width)) - board.viewBox.baseVal.width)(at(%q))`, board))
		assert.Less(t, wide, -24.0, "the longest text of the %s, beyond its width", board)
	}
	browser.Evaluate[any](b, `void (path = spelled("ApApBp"), played = 3, show())`)
	small := browser.Evaluate[[]string](b, `[...document.querySelectorAll("[data-key], button")]
		.filter((e) => e.checkVisibility()).filter((e) => e.getBoundingClientRect().height < 30).map((e) => e.dataset.key ?? e.textContent)`)
	assert.Empty(t, small, "what is hard to hit")
	press(b, "client-0")
	pills := browser.Evaluate[[]float64](b, `[...document.querySelectorAll("[data-key^=go-0-] rect")].flatMap((e) => {
		const { top, height, bottom } = e.getBoundingClientRect();
		return [top, height, bottom];
	})`)
	assert.Len(t, pills, 2*3, "what can happen to A")
	assert.GreaterOrEqual(t, pills[1], 44.0, "the height of the first, in pixels")
	assert.Greater(t, pills[3], pills[2], "a gap")
	b.Do(chromedp.EmulateViewport(761, 768)) // a tablet
	b.Until(`innerWidth === 761 && at("words").open`)
	assert.LessOrEqual(t, browser.Evaluate[int](b, `document.documentElement.scrollWidth`), 761)
	b.Do(chromedp.EmulateViewport(390, 844))
	b.Until(`innerWidth === 390 && at("board").plan.isNarrow && !at("words").open`)
	far := browser.Evaluate[float64](b, `at("second").getBoundingClientRect().bottom - at("board").getBoundingClientRect().top`)
	assert.LessOrEqual(t, far, 844.0, "both boards together, in pixels")
}

// On a phone, the hint and the words are explained under the board, in one line that opens; on a wide screen, the words
// are open.
func TestTheWordsOnAPhoneInABrowser(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "zh-CN"} {
		b := opens(t, language, "#4", 390, 844)
		lines := `[at("says").getBoundingClientRect().bottom <= at("help").getBoundingClientRect().top,
			at("help").getBoundingClientRect().bottom <= at("second").getBoundingClientRect().top, at("help").offsetHeight < 50,
			at("help").getBoundingClientRect().bottom <= innerHeight]`
		assert.Equal(t, []bool{true, true, true, true}, browser.Evaluate[[]bool](b, lines), language)
		b.Until(`!at("terms").checkVisibility()`)
		b.Do(chromedp.Click(chromedp.CSS("#words summary")))
		b.Until(`at("terms").checkVisibility() && at("terms").getBoundingClientRect().bottom <= at("second").getBoundingClientRect().top`)
		b.Until(`at("terms").getBoundingClientRect().bottom <= innerHeight`) // it is read without scrolling
		b.Do(chromedp.Click(chromedp.CSS("#words summary")))
		b.Do(chromedp.Click(chromedp.CSS("#give summary")))
		b.Until(`at("hint").checkVisibility() && at("answers").getBoundingClientRect().bottom <= at("second").getBoundingClientRect().top`)
		b.Until(`at("answers").getBoundingClientRect().bottom <= innerHeight`)
		b.Do(chromedp.EmulateViewport(1366, 768))
		b.Until(`at("terms").checkVisibility() && !document.querySelector("#words summary").checkVisibility()`)
	}
}

// Whatever breaks a lock in the way that its level asks for, the same choices, with the same fault, are
// right with the lock beside it.
func TestTheLockBesideSurvivesEachWinInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "", 1366, 768)
	for _, l := range hunts {
		if l.Beside == "" {
			continue
		}
		wins := browser.Evaluate[[]int](b, fmt.Sprintf(`((l) => {
			const [first, second] = [games[l.key], games[l.beside]], wins = [0, 0, 0];
			const visit = (path) => {
				const all = first.moves(path.at(-1)?.to ?? 0);
				for (const m of all) visit([...path, m]);
				if (all.length || !l.goals.some((goal) => reaches(goal, first, path, second))) return;
				const answers = beside(first, path, second), now = answers.at(-1).to;
				const end = second.end(rest(second, now).at(-1)?.to ?? now);
				wins[0]++;
				if (end.wrong.length) wins[1]++;
				if (faultOf(answers.flatMap((a) => a.moves)) !== faultOf(path)) wins[2]++;
			};
			visit([]);
			return wins;
		})(data.levels.find((l) => l.key === %q))`, l.Key))
		if l.Goals[0].Mends {
			continue // its wins are those with which the lock beside it breaks
		}
		t.Logf("%s: %d wins", l.Key, wins[0])
		assert.Equal(t, l.Key != "5", wins[0] > 5, l.Key)
		assert.Zero(t, wins[1], "wins with %s that are also wins with %s", l.Key, l.Beside)
		assert.Zero(t, wins[2], "wins with %s whose fault %s does not meet", l.Key, l.Beside)
	}
}

// A chip can be dragged: down its wire it passes, and off the wire it is lost.
func TestDraggingInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	drag := func(key string, dx, dy float64) {
		b.Until(fmt.Sprintf(`!isBusy && document.querySelector('[data-key=%q]') !== null`, key))
		at := browser.Evaluate[[]float64](b, fmt.Sprintf(
			`(({ x, y, width, height }) => [x + width / 3, y + height / 2])(
				document.querySelector('[data-key=%q]').getBoundingClientRect())`, key))
		b.Do(chromedp.DragAndDropXY(at[0], at[1], at[0]+dx, at[1]+dy))
		b.Until(`!isBusy`)
	}
	drag("go-0", 0, browser.Evaluate[float64](b, `(({ server, chip }) => (server - chip - 19) * at("board").clientHeight / at("board").viewBox.baseVal.height)(at("board").plan)`)) // it touches the server
	b.Contains("#says", "A's znode is 0.")
	drag("go-0", 10, 5) // not far enough
	b.Contains("#says", "A's znode is 0.")
	drag("go-1", -150, 10)
	b.Contains("#says", "B: create znode: request lost.")

	// While it is dragged, a chip says what its release would do.
	browser.Evaluate[any](b, `void (enter("4"), hold = document.querySelector(".chip"),
		hold.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true })))`)
	label := func(dx, dy int) string {
		return browser.Evaluate[string](b, fmt.Sprintf(`(dispatchEvent(new PointerEvent("pointermove",
			{ buttons: 1, clientX: %d, clientY: %d })), hold.textContent)`, dx, dy))
	}
	assert.Equal(t, []string{"create znode", "lose request", "lose reply", "deliver"},
		[]string{label(20, 5), label(150, 10), label(150, 100), label(0, 100)})
	browser.Evaluate[any](b, `void dispatchEvent(new PointerEvent("pointercancel"))`)
	b.Contains("#board .chip", "create znode")
	browser.Evaluate[any](b, `void (enter("4"), path = spelled("ApBr"), played = 2, show())`)
	b.Do(chromedp.Click(chromedp.CSS("#undo")))
	drag("go-1", -150, 100)
	b.Contains("#says", "B: create znode: reply lost.")
}

// On a touch screen, a finger drags a chip as the mouse does, and does not scroll. A drag that the browser ends leaves
// the chip where it was.
func TestDraggingWithAFingerInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 375, 800)
	send := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
		b.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			touch := input.DispatchTouchEventParams{Type: kind, TouchPoints: points}
			_, err := chromedp.Call(ctx, input.DispatchTouchEvent, touch)
			return err
		}))
	}
	// drag leaves the finger on the screen.
	drag := func(key string, dx, dy float64) {
		at := browser.Evaluate[[]float64](b, fmt.Sprintf(`(({ x, y, width, height }) => [x + width / 3, y + height / 2])(
			document.querySelector('[data-key=%q]').getBoundingClientRect())`, key))
		send(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: at[0], Y: at[1]})
		for _, part := range []float64{0.1, 0.3, 0.6, 1} {
			send(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: at[0] + part*dx, Y: at[1] + part*dy})
		}
	}
	drag("go-0", 130, 10)
	b.Until(`drag?.moved && document.querySelector("[data-chip][transform]") !== null`)
	send(input.DispatchTouchEventTypeTouchCancel)
	b.Until(`drag === null && document.querySelector("[data-chip][transform]") === null`)
	assert.Equal(t, "#4/", browser.Evaluate[string](b, `location.hash`))
	drag("go-0", 130, 10)
	send(input.DispatchTouchEventTypeTouchEnd)
	b.Contains("#says", "A: create znode: request lost.")
	assert.Zero(t, browser.Evaluate[float64](b, `scrollY`))
}

// Whatever is pressed while the page plays a path by itself, the path stops there: nothing is won, and the board
// shows the choices that the address has.
func TestAPressStopsAReplayInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#W23", 1366, 768)
	for _, c := range []struct{ place, press, wants string }{
		{"W23", `#again`, "#W23/"},
		{"W23", `#undo`, "#W23/Ap"},
		{"W23", `#levels [data-key="W19"]`, "#W19/"},
		{"W23", `#board [data-key="go-0"]`, "#W23/ApApAu"},
		{"W23", `#beads [data-key="bead-0"]`, "#W23/Ap"},
		{"4", `#again`, "#4/"},
		{"4", `#board [data-key="go-0"]`, "#4/ApApAu"},
	} {
		at := c.place + ", " + c.press
		path := map[string]string{"W23": "ApApBpBgBpBpBp", "4": "ApApBpBpAxBpBp"}[c.place]
		browser.Evaluate[any](b, fmt.Sprintf(`void (isEnded = false, localStorage.clear(), enter(%q),
			replay(spelled(%q)).then(() => { isEnded = true; }))`, c.place, path))
		b.Until(fmt.Sprintf(`played === 2 && isBusy && document.querySelector(%q) !== null &&
			(document.querySelector(%q).dispatchEvent(new MouseEvent("click", { bubbles: true })), true)`, c.press, c.press))
		b.Until(`isEnded && !isBusy`)
		assert.Equal(t, c.wants, browser.Evaluate[string](b, `location.hash`), at)
		assert.NotContains(t, b.Text("#says"), "broke it", at)
		assert.Zero(t, browser.Evaluate[int](b, `document.querySelectorAll(".goal.found").length`), at)
		assert.True(t, browser.Evaluate[bool](b, `played <= path.length && arrives(game, mine()) === here()`), at)
	}
}

// Each choice keeps its word. The choices are one line, in which the last one is seen, and an earlier one when it is
// pressed. Where the first choices are out of sight, the line fades.
func TestTheNamesOfTheChoicesInABrowser(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "zh-CN"} {
		for _, width := range []int{1366, 390} {
			b := opens(t, language, "#4", width, 844)
			seen := func(played int) []bool {
				return browser.Evaluate[[]bool](b, fmt.Sprintf(`(path = spelled("ApApBpBpBpAuApBpBuBp"), played = %d, show(), [at("beads").offsetHeight < 50,
					[...document.querySelectorAll("#beads span")].every((e) => e.checkVisibility() && e.textContent.length > 1),
					(({ left, right }, row) => left >= row.left && right <= row.right)(
						...[document.querySelector("#beads [aria-current=step]"), at("beads")].map((e) => e.getBoundingClientRect()))])`, played))
			}
			for _, played := range []int{1, 5, 10} {
				assert.Equal(t, []bool{true, true, true}, seen(played), "one line, words, and choice %d, in %s at %d", played, language, width)
				isSeen := browser.Evaluate[bool](b, `at("beads").firstChild.getBoundingClientRect().left >= at("beads").getBoundingClientRect().left`)
				b.Until(fmt.Sprintf(`(getComputedStyle(at("beads")).maskImage === "none") === %t`, isSeen))
				if width < 400 {
					assert.Equal(t, played == 1, isSeen, "choice 1 is seen beside choice %d", played)
				}
			}
		}
	}
}

// The board and the sentence under it use the same words for the same thing.
func TestOneWordForOneThingInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4/ApApBpBp", 1366, 768)
	b.Until(`played === 4`) // the path has been shown
	press(b, "turn-1", "go-1-lose-reply")
	b.Contains("#says", "B: watch 0: reply lost.")
	seen := func() string {
		return browser.Evaluate[string](b, `document.querySelector("#beads button:last-child").innerText`)
	}
	assert.Equal(t, "B watch lost", seen()) // without the sign
	browser.Evaluate[any](b, `void (enter("4"), path = spelled("Ar"), played = 1, show())`)
	assert.Equal(t, "A create lost", seen())
	for _, fault := range []string{"l", "x"} {
		browser.Evaluate[any](b, fmt.Sprintf(`void enter("W19", "ApA%s")`, fault))
		b.Contains("#board", "watch (no name)")
		b.Contains("#says", "A's list failed; A does not know which znode is before its own.")
	}
	browser.Evaluate[any](b, `void enter("W19", "ApAxAp")`)
	b.Contains("#says", "A learns: (no name) does not exist (A has a new session, so the server answers).")
	browser.Evaluate[any](b, `void enter("W19", "ApAlAp")`)
	b.Contains("#says", "A learns: (no name) does not exist. ")
	browser.Evaluate[any](b, `void enter("5", "AlAp")`)
	b.Contains("#says", "A's server is up to date; now A can look for its own znode.")

	differ := browser.Evaluate[[]string](b, `(() => {
		const differ = new Set();
		for (const [key, game] of Object.entries(games)) {
			const visit = (path) => {
				const point = path.at(-1)?.to ?? 0, said = (game.end(point)?.says ?? []).map(say);
				for (let c = 0; c < game.data.clients; c++) {
					const [state] = stateOf(game, point, c, path);
					const isEnd = said.find((s) => s.startsWith(nameOf(c) + " is done") || s.startsWith(nameOf(c) + " got an error"));
					if (isEnd && !isEnd.includes(state)) differ.add(key + ": " + isEnd + ", but the board: " + state);
				}
				for (const m of game.moves(point)) visit([...path, m]);
			};
			visit([]);
		}
		return [...differ];
	})()`)
	assert.Empty(t, differ, "ends where the board says something else")
}

// Whoever has won a level, and finds another way to break its lock, can go on.
func TestTheWayOnAfterAWinInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4/AlBpBpBp", 1366, 768)
	b.Says("#hunt.main", "Hunt on: Two hold it")
	b.Until(`at("next").hidden`)
	browser.Evaluate[any](b, `void (store.set("zklock-network-4", '{"0":5}'), enter("4", "AlBpBpBp"))`)
	b.Contains("#says", "One waits forever")
	b.Until(`!at("next").hidden`)
	b.Says("#hunt", "Hunt on: 2 goals left")

	// A win is no end while goals are left.
	browser.Evaluate[any](b, `void (localStorage.clear(), enter("4"))`)
	press(b, "go-0", "go-0", "go-1", "client-0", "go-0-expire", "go-1")
	b.Contains("#says", "You broke it, in 5 choices: Two hold it.")
	b.Says(".goal.found", "✓ Two hold ityou: 5; fewest: 5 ★")
	b.Says("#board .stamp", "✓ Broken: two hold it")
	b.Says("#hunt", "Hunt on: 2 goals left")
	b.Until(`at("repair").checkVisibility()`)
	b.Says("#next.main", "Next: a blog's lock →")
	b.Says("#every", "All 1,770 ways to play")
	b.Do(chromedp.Click(chromedp.CSS("#every")))
	b.Until(`at("icicle").getBoundingClientRect().bottom <= innerHeight && document.activeElement.id === "icicle"`)
	b.Says("#goals .goal:not(.found) small", "not found yet") // nothing is given up
	browser.Evaluate[any](b, `scrollTo(0, 150)`)
	b.Do(chromedp.Click(chromedp.CSS("#hunt")))
	b.Until(`location.hash === "#4/" && document.activeElement.dataset.key === "go-0"`)
	b.Until(`at("asks").getBoundingClientRect().top >= 0`)
	b.Until(`at("repair").hidden`)
	b.Says("#asks", "Now: one waits forever or a znode is left behind?")
	press(b, "turn-0", "go-0-lose-reply", "go-1", "go-1", "go-1")
	b.Contains("#says", "A is alive, so its session does not end, and nobody deletes that znode")
	b.Says("#code ins", "+ mine, err := l.find(prefix)") // it repairs another mistake
	b.Says("#step", "The repair, in step 5 →")
	b.Until(`document.querySelectorAll(".goal.found").length === 3 && at("hunt").hidden && !at("next").hidden`)
	b.Says("#asks", "All 3 are found.")

	// What is pressed next has one place.
	right := func(id string) float64 {
		return browser.Evaluate[float64](b, fmt.Sprintf(`at(%q).getBoundingClientRect().right`, id))
	}
	next := right("next")
	browser.Evaluate[any](b, `void (localStorage.clear(), enter("4"), path = spelled("AlBpBpBp"), played = path.length, show())`)
	b.Says("#hunt.main", "Hunt on: Two hold it")
	assert.Equal(t, next, right("hunt"))
}

// What to press after an end is on the screen of a small laptop, where it was before. The next lock comes last.
func TestTheButtonsAtAnEndInABrowser(t *testing.T) {
	t.Parallel()
	for _, height := range []int{641, 650, 768} {
		b := opens(t, "en", "#4", 1366, height)
		place := func() []float64 {
			return browser.Evaluate[[]float64](b, `(({ x, y }) => [x, y + scrollY])(at("undo").getBoundingClientRect())`)
		}
		seen := browser.Evaluate[[]bool](b, `[document.documentElement.scrollHeight <= innerHeight,
			at("second").clientHeight / at("second").viewBox.baseVal.height <
				1.01 * at("board").clientHeight / at("board").viewBox.baseVal.height]`)
		assert.Equal(t, []bool{true, true}, seen, "nothing to scroll, and the copy no larger than the board, at %d", height)
		before := place()
		for _, path := range []struct{ key, choices string }{
			{"4", "ApApBpAxBp"}, {"4", "AlBpBpBp"}, {"W23", "ApApBpBgBpBpBp"}, {"W19", "ApAxApBpBp"}, {"5.5", "ApApBpAxBp"},
		} {
			browser.Evaluate[any](b, fmt.Sprintf(`void enter(%q, %q)`, path.key, path.choices))
			b.Until(fmt.Sprintf(`!isBusy && played === %d`, len(path.choices)/2))
			bottom := browser.Evaluate[float64](b, `document.querySelector(".ways").getBoundingClientRect().bottom`)
			assert.LessOrEqual(t, bottom, float64(height), "the end of the buttons of %s/%s", path.key, path.choices)
			assert.Equal(t, before, place(), "Take back, at the end of %s/%s", path.key, path.choices)
			next := browser.Evaluate[float64](b, `(store.set("zklock-network-" + level.key, '{"0":9}'), show(),
				at("next").getBoundingClientRect().bottom + scrollY)`)
			browser.Evaluate[any](b, fmt.Sprintf(`void enter(%q)`, path.key))
			b.Until(fmt.Sprintf(`!at("next").hidden && at("next").getBoundingClientRect().bottom + scrollY === %v`, next))
		}
		browser.Evaluate[any](b, `void enter("4", "ApApBpAxBp")`)
		b.Until(`!isBusy && played === 5`)
		first := browser.Evaluate[string](b, `document.querySelector(".ways button").id`)
		assert.Equal(t, "next", first, "for the keyboard, which is on it")
		isLast := browser.Evaluate[bool](b, `[...document.querySelectorAll(".ways button")]
			.every((e) => e.getBoundingClientRect().right <= at("next").getBoundingClientRect().right)`)
		assert.True(t, isLast, "for the eye, at the right")
	}
}

// What can happen to a client stands between it and the server, and covers neither. It can be cancelled wherever the focus is.
func TestTheMenuOfAClientInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	press(b, "client-1")
	places := browser.Evaluate[[]float64](b, `(() => {
		const box = (e) => { const { y, height } = e.getBBox(); return [y, y + height]; };
		const pills = [...at("board").querySelectorAll("[data-key^=go-1-] rect")];
		return [box(at("board").querySelector("[data-key=client-1] circle"))[1], ...pills.flatMap(box), box(at("board").querySelector(".server"))[0]];
	})()`)
	assert.Len(t, places, 2+2*3, "a client, three pills, and the server")
	assert.True(t, slices.IsSorted(places), "from the client down to the server: %v", places)
	browser.Evaluate[any](b, `document.activeElement.blur()`)
	b.Do(chromedp.KeyEvent(kb.Escape))
	b.Until(`menu === "" && document.querySelector("[data-key=go-1-crash]") === null`)
	b.Until(`location.hash === "#4/"`)

	// It is closed by a press on it, so that what follows is seen.
	press(b, "client-1")
	open := browser.Evaluate[int](b, `(go(moves().find((m) => m.client === 1 && m.deed === "crash")),
		[...at("board").querySelectorAll("[data-key^=go-1-]")].filter((e) => !e.matches(".flies")).length)`)
	assert.Zero(t, open, "pills, while B crashes")
}

// The coin itself does nothing: pressed, it shows all that can spend it, and only that.
func TestTheCoinInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	press(b, "coin")
	b.Says("#how", "Spend it here: ✂ loses a message; press A or B for the rest.")
	press(b, "go-0", "go-0", "coin")
	spends := func() []string {
		return browser.Evaluate[[]string](b, `[...document.querySelectorAll(".spends")].map((e) => e.dataset.key)`)
	}
	assert.ElementsMatch(t, []string{"client-0", "turn-1", "client-1"}, spends())
	assert.Equal(t, "#4/ApAp", browser.Evaluate[string](b, `location.hash`))
	press(b, "turn-1")
	assert.Empty(t, spends(), "after the next press")
	b.Do(chromedp.KeyEvent(kb.Escape))
	for _, cancel := range []func(){
		func() { b.Do(chromedp.KeyEvent(kb.Escape)) }, func() { b.Do(chromedp.Click(chromedp.CSS("#asks"))) },
	} {
		press(b, "coin")
		assert.Len(t, spends(), 3)
		cancel()
		b.Until(`document.querySelector(".spends") === null && document.activeElement.dataset.key === "coin"`)
	}

	// It can be dragged to where it is spent: that opens the menu there. Elsewhere it goes back.
	drag := func(to string) {
		at := browser.Evaluate[[]float64](b, fmt.Sprintf(`["[data-key=coin]", %q].flatMap((sign) => {
			const { x, y, width, height } = document.querySelector(sign).getBoundingClientRect();
			return [x + width / 2, y + height / 3];
		})`, to))
		b.Do(chromedp.DragAndDropXY(at[0], at[1], at[2], at[3]))
	}
	for to, opened := range map[string]string{
		"[data-key=client-0]": "client-0", `[data-chip="1"]`: "turn-1", `[data-chip="0"]`: "", "#board .server": "",
	} {
		drag(to)
		b.Until(fmt.Sprintf(`drag === null && menu === %q`, opened))
		assert.Zero(t, browser.Evaluate[int](b, `document.querySelectorAll("[data-key=coin][transform]").length`), to)
		b.Do(chromedp.KeyEvent(kb.Escape))
	}
	press(b, "turn-1", "go-1-lose-request")
	b.Until(`document.querySelector('[data-key="coin"]') === null`)
}

// On the map of all ways to play, a block that is wide enough says its choice, and its words fit into it.
func TestTheWordsOnTheMapInABrowser(t *testing.T) {
	t.Parallel()
	for language, wants := range map[string][]string{
		"en":    {"the beginning", "A create", "B create", "A list", "B list", "A Unlock"},
		"zh-CN": {"开始", "A 创建", "B 创建", "A 列出", "B 列出", "A Unlock"},
	} {
		for _, width := range []int{390, 1366} {
			b := opens(t, language, "#4", width, 844)
			seen := browser.Evaluate[struct {
				Words []string
				Wide  float64
			}](b, `(() => {
				const fill = CanvasRenderingContext2D.prototype.fillText, seen = { Words: [], Wide: -9999 };
				const rows = {};
				CanvasRenderingContext2D.prototype.fillText = function (says, x, y) {
					seen.Words.push(says);
					(rows[y] ??= []).push([x, x + this.measureText(says).width]);
				};
				hasGivenUp = true;
				path = spelled("ApApBp"); played = 3;
				show();
				CanvasRenderingContext2D.prototype.fillText = fill;
				for (const row of Object.values(rows)) {
					row.sort((a, b) => a[0] - b[0]).forEach(([, end], k) => {
						seen.Wide = Math.max(seen.Wide, end - (row[k + 1]?.[0] ?? at("icicle").width));
					});
				}
				return seen;
			})()`)
			known := wants
			if width == 390 {
				known = wants[:5]
			}
			assert.Subset(t, seen.Words, known, "%s at %d", language, width)
			assert.Less(t, len(seen.Words), 60, "%s at %d: words on the map", language, width)
			assert.Less(t, seen.Wide, 0.0, "%s at %d: words that reach into others", language, width)
		}
	}
}

// Each column of all interleavings is one: pressed, it is played. This is no win of the reader's.
func TestAColumnIsPlayedInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#W23", 1366, 768)
	browser.Evaluate[any](b, `void (hasGivenUp = true, show())`)
	b.Contains("#counts", "1,920 interleavings")
	assert.NotContains(t, b.Text("#counts"), "Blue is your path", "before the first choice")
	columns := browser.Evaluate[[]string](b, `(() => {
		const leaves = [];
		const visit = (path) => {
			const all = game.moves(path.at(-1)?.to ?? 0);
			for (const m of all) visit([...path, m]);
			if (!all.length) leaves.push(path.map((m) => nameOf(m.client) + CODES[m.deed]).join(""));
		};
		visit([]);
		return leaves;
	})()`)
	require.Len(t, columns, 1920)
	reds := browser.Evaluate[[]int](b, `(() => {
		const reds = [];
		let column = 0;
		const visit = (point) => {
			const all = game.moves(point);
			for (const m of all) visit(m.to);
			if (!all.length && game.end(point).wrong.length) reds.push(column);
			if (!all.length) column++;
		};
		visit(0);
		return reds;
	})()`)
	require.NotEmpty(t, reds)
	// nearest returns the red column that is nearest to one within a reach, or that one.
	nearest := func(under int, reach float64) int {
		for off := 0; float64(off) <= reach; off++ {
			for _, column := range []int{under - off, under + off} {
				if slices.Contains(reds, column) {
					return column
				}
			}
		}
		return under
	}
	var isSnapped, isExact bool
	for _, c := range []struct {
		pointer string
		place   float64
		near    float64
	}{{"mouse", 0, 6}, {"mouse", 0.3003, 6}, {"mouse", 0.99, 6}, {"touch", 0.3003, 12}, {"mouse", (float64(reds[0]) - 5) / 1920, 6}} {
		seen := browser.Evaluate[struct{ Under, Wide, Aim float64 }](b, fmt.Sprintf(`((canvas) => {
			const { left, top, width } = canvas.getBoundingClientRect();
			let under;
			canvas.addEventListener("click", (e) => { under = Math.floor(e.offsetX / canvas.clientWidth * 1920); }, { once: true });
			const send = (type) => canvas.dispatchEvent(new PointerEvent(type,
				{ pointerType: %q, clientX: left + %f * canvas.clientWidth, clientY: top + 100 }));
			send("pointermove");
			if (at("aim").hidden) throw "nothing is outlined";
			const Aim = parseFloat(at("aim").style.left) / 100 * 1920;
			send("click");
			return { Under: under, Wide: canvas.clientWidth, Aim };
		})(at("icicle"))`, c.pointer, c.place))
		under := int(seen.Under)
		column := nearest(under, c.near*1920/seen.Wide)
		isSnapped = isSnapped || column != under
		isExact = isExact || column == under
		assert.InDelta(t, column, seen.Aim, 0.01, "the outlined column, %+v", c)
		b.Until(fmt.Sprintf(`!isBusy && location.hash === %q`, "#W23/"+columns[column]))
	}
	assert.True(t, isSnapped && isExact, "presses near a red column, and far from all")

	// With the keyboard: the next red column, and Enter.
	browser.Evaluate[any](b, `void (at("icicle").ariaValueNow = 1, at("icicle").focus())`)
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	at := fmt.Sprintf("%d: A gives up · B create · A create · A list · A watch · A delete · A Unlock · B list · "+
		"B Unlock · B delete → A call that should succeed fails", reds[0]+1)
	assert.Equal(t, at, browser.Evaluate[string](b, `at("aim").checkVisibility() ? at("icicle").ariaValueText : "nothing is outlined"`))
	lines := browser.Evaluate[float64](b, `at("aimed").offsetHeight / parseFloat(getComputedStyle(at("aimed")).minHeight)`)
	assert.InDelta(t, 1, lines, 0.1, "the height of what the map says of a column")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Until(fmt.Sprintf(`!isBusy && location.hash === %q`, "#W23/"+columns[reds[0]]))
	assert.Zero(t, browser.Evaluate[int](b, `document.querySelectorAll(".goal.found").length`))
}

// Both boards, and what is said under the second, agree at the end of every path, whichever two locks stand side by
// side.
func TestTheSecondBoardAgreesWithItsTextInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4/AlBpBpBp", 1366, 768)
	drawn := `[...at("second").querySelectorAll(".name")].map((e) => {
		do e = e.nextElementSibling; while (e.tagName !== "text");
		return e.textContent;
	})`
	for _, path := range []struct{ choices, drawn, says string }{
		{"AlBpBpBp", "is done / is done", "stays right: A is done; B is done."},
		{"BlApApAp", "is done / is done", "stays right: A is done; B is done."},
		{"ApApBlAuAp", "is done / is done", "stays right: A is done; B is done."},
		{"ApApBpAxBp", "stopped: no connection / HOLDS the lock",
			"this moment: A stopped: no connection; B holds the lock."},
	} {
		browser.Evaluate[any](b, fmt.Sprintf(`void enter("4", %q)`, path.choices))
		b.Until(fmt.Sprintf(`!isBusy && late < 0 && played === %d`, len(path.choices)/2))
		assert.Equal(t, path.drawn, browser.Evaluate[string](b, drawn+`.join(" / ")`), path.choices)
		b.Contains("#beside-says", path.says)
	}

	for _, first := range browser.Evaluate[[]string](b, `Object.keys(games)`) {
		ends := browser.Evaluate[struct {
			Count  int
			Differ []string
		}](b, fmt.Sprintf(`((first) => {
			const differ = new Set(), seen = new Set();
			const compare = (key, choices) => {
				level = { ...data.levels[0], key: first, beside: key };
				path = choices; played = choices.length;
				const two = second(), ends = [0, 1].map((c) => ended(two.moved, c));
				const place = [key, two.now, ...ends].join();
				if (seen.has(place)) return;
				seen.add(place);
				showSecond(two);
				const says = at("beside-says").textContent;
				%s.forEach((state, c) => {
					const s = two.other.stand(two.now, c), lost = isCut(s, c, two.moved) && !isTold(s) && s.state !== "got an error";
					const who = nameOf(c) + (lost ? ": connection lost, " : " "), inSentence = who + state.replace("HOLDS", "holds");
					const isSaid = two.end.wrong.length || says.includes(inSentence);
					if (!isSaid) differ.add([key, says, inSentence].join(" | "));
				});
			};
			const visit = (choices) => {
				const all = game.moves(choices.at(-1)?.to ?? 0);
				for (const m of all) visit([...choices, m]);
				if (!all.length) for (const key of Object.keys(games)) compare(key, choices);
			};
			game = games[first];
			visit([]);
			return { Count: seen.size, Differ: [...differ] };
		})(%q)`, drawn, first))
		t.Logf("%s: %d ends of second boards", first, ends.Count)
		assert.Greater(t, ends.Count, 20, first)
		assert.Empty(t, ends.Differ, "beside %s", first)
	}
}

// What cannot be reached any more is said when the fault is spent, on the cards alone, or if a hint is asked for. A
// goal that nobody reaches is not said to be out of reach.
func TestTheGoalsThatAreLeftInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	cards := func() []string {
		return browser.Evaluate[[]string](b, `[...document.querySelectorAll(".goal small")].map((e) => e.textContent)`)
	}
	const isLost, isOpen = "out of reach from here", "not found yet"
	press(b, "go-0", "go-0")
	b.Says(`#board [data-key="go-0"] text`, "A finishes") // this is no message
	dashed := browser.Evaluate[bool](b, `document.querySelector('[data-key="go-0"] rect').style.strokeDasharray !== ""`)
	assert.True(t, dashed)
	press(b, "go-0") // A unlocks: whatever comes, two do not hold it at once
	assert.Equal(t, []string{isOpen, isOpen, isOpen}, cards(), "the fault is not spent")
	b.Do(chromedp.Click(chromedp.CSS("#give summary")))
	b.Until(`document.querySelector(".goal small").textContent === "out of reach from here"`)
	assert.Equal(t, []string{isLost, isOpen, isOpen}, cards(), "a hint is asked for")
	b.Do(chromedp.Click(chromedp.CSS("#give summary")))
	b.Until(`document.querySelector(".goal small").textContent === "not found yet"`)
	press(b, "client-1", "go-1-crash")
	const nothing = "Nothing more to find from here: take a choice back."
	b.Says("#how", nothing)
	b.Until(`at("undo").matches(".pulses")`)
	b.Says("#says", "B: crashes.")
	assert.Equal(t, []string{isLost, isLost, isLost}, cards())
	press(b, "go-0")
	b.Contains("#says", "It held: A is done; B crashed.")
	b.Do(chromedp.Click(chromedp.CSS("#again")))
	press(b, "turn-0", "go-0-lose-reply") // the reply to its create is lost
	assert.Equal(t, []string{isLost, isOpen, isOpen}, cards())
	b.Says("#how", "Fault spent: deliver the rest.")
	b.Until(`!at("undo").matches(".pulses")`)

	// So it is where the lock beside has to break.
	browser.Evaluate[any](b, `void enter("5.5")`)
	press(b, "go-0", "client-0", "go-0-crash")
	assert.Equal(t, []string{isLost, isLost}, cards())
	b.Says("#how", nothing)
	b.Do(chromedp.Click(chromedp.CSS("#again")))
	b.Do(chromedp.Click(chromedp.CSS("#give summary")))
	b.Contains("#way", "It is 9 choices from here.")
	b.Says("#hint", "Goes on here; the recipe waits forever: A client that has finished sends one more request.")
	b.Says("#answers", "Show me")

	browser.Evaluate[any](b, `void enter("5")`)
	press(b, "go-0", "client-0", "go-0-crash")
	assert.Equal(t, []string{isOpen, isOpen, isOpen}, cards(), "where nobody wins")
}

// What can be pressed for a fault is named, and nothing else.
func TestTheFaultsThatAreNamedInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	press(b, "go-0", "go-0", "go-1", "go-1")
	b.Says("#how", "Press to deliver. Or make one thing go wrong: ✂ loses a message; press A or B for the rest.")
	press(b, "go-1") // B waits, and A can only call Unlock
	b.Contains("#says", "B watches 0.")
	b.Says("#how", "Press to deliver. Or make one thing go wrong: press A or B.")
	press(b, "client-1", "go-1-crash")
	b.Says("#how", "Nothing more to find from here: take a choice back.")
}

// What is pressed during a motion counts: the motion ends at once. But nothing is chosen that was not seen.
func TestAPressDuringAMotionInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	// click presses where a sign is, although it may have flown.
	browser.Evaluate[any](b, `void (places = {}, click = (key) => {
		const sign = document.querySelector("[data-key=" + key + "]");
		if (!sign?.closest(".flies")) places[key] = sign.getBoundingClientRect();
		const { x, y, width, height } = places[key];
		const at = { bubbles: true, clientX: x + width / 3, clientY: y + height / 2 };
		document.elementFromPoint(at.clientX, at.clientY).dispatchEvent(new MouseEvent("click", at));
		return isMoving();
	}, key = () => {
		document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, key: "Enter" }));
		return isMoving();
	})`)
	for _, c := range []struct{ pressed, wants string }{
		{`click("go-0"), click("go-1")`, "#4/ApBp"},
		{`click("go-0"), click("go-0")`, "#4/Ap"}, // a double press is one choice
		{`click("go-0"), click("go-0"), click("go-0")`, "#4/ApAp"},
		{`click("go-0"), click("go-1"), click("go-0"), click("go-1")`, "#4/ApBpApBp"},
		{`document.querySelector("[data-key=go-0]").focus(), key(), key()`, "#4/Ap"},
		{`document.querySelector("[data-key=go-0]").focus(), key(), key(), key()`, "#4/ApAp"},
		// The pill is gone when the motion ends, and a chip is there.
		{`click("turn-1"), click("go-0"), click("go-1-lose-request")`, "#4/Ap"},
	} {
		isUnderWay := browser.Evaluate[bool](b, `(enter("4"), `+c.pressed+`)`)
		assert.Equal(t, c.wants != "#4/Ap", isUnderWay, c.pressed)
		b.Until(`!isBusy`)
		assert.Equal(t, c.wants, browser.Evaluate[string](b, `location.hash`), c.pressed)
	}
}

// On a phone, the question, the goals, the board and its buttons are on the screen together, and so is the way on after
// a win. Nothing pushes the board.
func TestOneScreenOfAPhoneInABrowser(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "zh-CN"} {
		b := opens(t, language, "#4", 390, 844)
		bottom := func(id string) float64 {
			return browser.Evaluate[float64](b, fmt.Sprintf(`at(%q).getBoundingClientRect().bottom`, id))
		}
		top := func() float64 {
			return browser.Evaluate[float64](b, `at("board").getBoundingClientRect().top + scrollY`)
		}
		for _, l := range hunts {
			browser.Evaluate[any](b, fmt.Sprintf(`void enter(%q)`, l.Key))
			assert.LessOrEqual(t, bottom("says"), 844.0, "the end of the text, below all of these, in %s", l.Key)
			wide := browser.Evaluate[int](b, `document.documentElement.scrollWidth`)
			assert.LessOrEqual(t, wide, 390, "the widest line, with the tab of %s", l.Key)
		}
		browser.Evaluate[any](b, `void enter("4")`)
		before := top()
		press(b, "go-0", "go-0", "go-1", "client-0", "go-0-expire", "go-1")
		b.Until(`!at("next").hidden`)
		assert.LessOrEqual(t, bottom("next"), 844.0)
		assert.Equal(t, before, top(), "the board, before and after a win")
		below := browser.Evaluate[float64](b, `at("next").getBoundingClientRect().top - at("says").getBoundingClientRect().bottom`)
		assert.GreaterOrEqual(t, below, 0.0, "the way on comes after the reason")
		b.Do(chromedp.Click(chromedp.CSS("#look")))
		b.Until(`(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(at("second").getBoundingClientRect())`)
		b.Do(chromedp.ScrollIntoView(chromedp.CSS("#hunt")), chromedp.Click(chromedp.CSS("#hunt")))
		b.Until(`location.hash === "#4/"`)
		assert.True(t, browser.Evaluate[bool](b, `at("how").getBoundingClientRect().top >= 0`), "the board is on the screen again")
	}
}

// On a phone, what happens to the lock below is said on the screen, and leads there. On a wide screen it is seen.
func TestTheBoardBelowOnAPhoneInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#5.5", 390, 844)
	press(b, "go-0", "go-0", "go-1", "go-1", "go-1", "go-0")
	b.Until(`late < 0 && document.querySelector("#says button") === null`)
	b.Says("#goals .goal small", "not found yet")
	press(b, "turn-0", "go-0-lose-request")
	b.Until(`late < 0`)
	b.Says("#says p", "A: delete 0: request lost. A asks again.")
	b.Says("#says button", "The recipe, below, is broken now: A got an error; B waits forever ↓")
	b.Says("#goals .goal small", "now finish here")
	b.Until(`document.querySelector("#says button").getBoundingClientRect().bottom <= innerHeight`)
	b.Do(chromedp.Click(chromedp.CSS("#says button")))
	b.Until(`(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(at("second").getBoundingClientRect())`)

	browser.Evaluate[any](b, `void (enter("W19"), path = spelled("ApBpApBl"), played = path.length, show())`)
	b.Says("#says button", "With the recipe, below: B got an error, cleans up ↓")
	b.Do(chromedp.EmulateViewport(1366, 768))
	b.Until(`document.querySelector("#says button") === null`)
}

// On a laptop the board has one place, in each level, before and after a win; and no text is small.
func TestNothingPushesTheBoardInABrowser(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "zh-CN"} {
		b := opens(t, language, "", 1366, 768)
		top := func() float64 { return browser.Evaluate[float64](b, `at("board").getBoundingClientRect().top`) }
		before := top()
		lines := browser.Evaluate[int](b, `Math.round(at("asks").offsetHeight / parseFloat(getComputedStyle(at("asks")).lineHeight))`)
		assert.Equal(t, 2, lines, "lines of the first question, and of why it matters")
		wide := browser.Evaluate[float64](b, `at("board").clientWidth`)
		for _, l := range hunts {
			browser.Evaluate[any](b, fmt.Sprintf(
				`void (enter(%q), hasGivenUp = true, replay(least(level.goals[0])))`, l.Key))
			assert.Equal(t, before, top(), l.Key)
			assert.Equal(t, wide, browser.Evaluate[float64](b, `at("board").clientWidth`), "%s: the width of the board", l.Key)
			b.Until(`!isBusy && late < 0 && played === shown.count`)
			assert.Equal(t, before, top(), "%s, at its end", l.Key)
			small := browser.Evaluate[[]string](b, `[...document.querySelectorAll("body *")]
				.filter((e) => e.checkVisibility() && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
				.filter((e) => {
					const svg = e.ownerSVGElement, scale = svg ? svg.clientHeight / svg.viewBox.baseVal.height : 1;
					return scale * parseFloat(getComputedStyle(e).fontSize) < 12;
				}).map((e) => e.textContent)`)
			assert.Empty(t, small, "%s: less than 12 pixels", l.Key)
		}
		browser.Evaluate[any](b, fmt.Sprintf(`void enter(%q)`, locks.PartA))
		press(b, "go-0", "go-0", "go-1", "go-1", "go-1", "go-0", "turn-0", "go-0-lose-request")
		b.Until(`late < 0 && /now finish here|在这里走完/.test(document.querySelector(".goal small").textContent)`)
		assert.Equal(t, before, top(), "the board, when the recipe beside it breaks")
	}
}

// What the second board does by itself is explained. After a win nobody is asked to give up.
func TestTheWordsBesideAWinInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	const further = "The repaired lock sends more requests here; they follow by themselves."
	press(b, "go-0")
	b.Says("#beside-says", "")
	b.Says("#give summary", "A hint")
	b.Do(chromedp.Click(chromedp.CSS("#undo")))
	browser.Evaluate[any](b, `void (isLate = [], new MutationObserver(() => isLate.push(late === halts)).observe(at("says"), { childList: true }))`)
	press(b, "turn-0", "go-0-lose-reply") // the reply to its create is lost
	b.Contains("#says", "and A does not know")
	assert.True(t, browser.Evaluate[bool](b, `isLate.at(-1)`), "the text does not wait for the second board")
	b.Contains("#second", "HOLDS the lock")
	b.Says("#beside-says", further)

	b.Do(chromedp.Click(chromedp.CSS("#again")))
	press(b, "go-0", "go-0", "go-1", "client-0", "go-0-expire", "go-1")
	b.Contains("#says", "You broke it, in 5 choices")
	b.Says("#give summary", "A hint")
	b.Do(chromedp.Click(chromedp.CSS("#give summary")))
	b.Says("#hint", "One waits forever: The server may have carried out a request whose reply is lost.")
	b.Until(`at("answers").textContent === "Show me"`) // one, for the next goal alone
	browser.Evaluate[any](b, `void (store.set("zklock-network-4", '{"0":5,"1":4}'), show())`)
	b.Says("#hint", "The request that deletes a znode can be lost.")
	browser.Evaluate[any](b, `void (store.set("zklock-network-4", '{"0":5,"1":4,"2":4}'), show())`)
	b.Says("#give summary", "Show me")
	b.Says("#hint", "")
	b.Do(chromedp.Click(chromedp.CSS(`#levels [data-key="W23"]`)))
	b.Says("#give summary", "A hint")
}

// What "Show me" plays has as few choices as any win. All goes well until its fault, which is the one that the level is about.
func TestWhatShowMePlaysInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "", 1366, 768)
	for key, wants := range map[string]string{
		"4": "ApApBpAxBp", "W23": "ApApBpBpBpBgBp", "W19": "ApApBpBlBp", "5.5": "ApApAuBpArApBpBuBp",
	} {
		seen := browser.Evaluate[struct {
			Path   string
			Fewest int
		}](b, fmt.Sprintf(`((key) => {
			enter(key);
			let Fewest = 99;
			const visit = (path) => {
				if (reaches(level.goals[0], game, path, games[level.beside])) Fewest = Math.min(Fewest, path.length);
				for (const m of game.moves(path.at(-1)?.to ?? 0)) visit([...path, m]);
			};
			visit([]);
			return { Path: least(level.goals[0]).map((m) => nameOf(m.client) + CODES[m.deed]).join(""), Fewest };
		})(%q)`, key))
		assert.Equal(t, wants, seen.Path, key)
		assert.Len(t, seen.Path, 2*seen.Fewest, key)
	}

	browser.Evaluate[any](b, `void enter("W23")`)
	b.Do(chromedp.Click(chromedp.CSS("#give summary")), chromedp.Click(chromedp.CSS("#answers button")))
	b.Until(`!isBusy && location.hash === "#W23/ApApBpBpBpBgBp"`)
}

// While a reply is under way, the server has the znode already, and the client does not have the reply. That is so also
// if the reply is lost.
func TestTheServerChangesBeforeTheClientInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	browser.Evaluate[any](b, `void (seen = [], new MutationObserver((all) => {
		for (const sign of all.flatMap((m) => [...m.addedNodes])) {
			const znodes = at("board").querySelectorAll("[data-znode]").length;
			const state = at("board").querySelector(".name + text, g + text").textContent;
			const says = sign.classList.contains("sign") && (sign.hasAttribute("transform") ? "" : "at the corner: ") + sign.textContent;
			if (says) seen.push([says, znodes, state].join(" | "));
		}
	}).observe(at("board"), { childList: true }))`)
	signs := func(path string) []string {
		browser.Evaluate[any](b, fmt.Sprintf(`void (seen.length = 0, enter("4", %q))`, path))
		b.Until(fmt.Sprintf(`!isBusy && played === %d`, len(path)/2))
		return browser.Evaluate[[]string](b, `seen`)
	}
	const asks, answers = "create znode | 0 | wants the lock", "yours: 0 | 1 | wants the lock"
	assert.Equal(t, []string{asks, answers}, signs("Ap"))
	assert.Equal(t, []string{asks, answers}, signs("Al"), "the reply is lost")
	assert.Equal(t, []string{asks}, signs("Ar"), "the request is lost")

	// With a session its znodes fade out, and it is said what that means for the client.
	browser.Evaluate[any](b, `void (enter("4"), path = spelled("ApAp"), played = 2, show())`)
	fades := browser.Evaluate[bool](b, `(go(moves().find((m) => m.deed === "expire" && m.client === 0)),
		isBusy && at("board").querySelector("[data-znode].gone") !== null)`)
	assert.True(t, fades, "the znode fades out")
	b.Contains("#says", "A is cut off: its session ends. The server deletes 0. A goes on.")
	browser.Evaluate[any](b, `void (enter("5"), path = spelled("ApApAp"), played = path.length, show())`)
	browser.Evaluate[any](b, `void go(moves().find((m) => m.deed === "expire" && m.client === 0))`)
	b.Contains("#says", "A is cut off: its session ends. The server deletes 0. A's connection is lost, so A stops.")
}

// What is wrong is said at the top of the board, in a box that holds it, over nothing else. A client that waits forever
// is red.
func TestTheStampInABrowser(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "zh-CN"} {
		for _, width := range []int{390, 1366} {
			b := opens(t, language, "", width, 768)
			for _, path := range []string{"ApApBpAxBp", "AlBpBpBp"} {
				browser.Evaluate[any](b, fmt.Sprintf(
					`void (enter("4"), path = spelled(%q), played = path.length, show())`, path))
				covered := browser.Evaluate[[]string](b, `(() => {
					const text = at("board").querySelector(".stamp text"), inside = text.getBBox();
					const box = at("board").querySelector(".stamp rect").getBBox();
					const right = box.x + box.width, isBelow = (o) => o.y >= box.y + box.height;
					const isBeside = (o) => o.x + o.width <= box.x || o.x >= right || isBelow(o);
					const covered = [...at("board").querySelectorAll("text, circle, path, rect")]
						.filter((e) => !e.closest(".stamp") && !isBeside(e.getBBox())).map((e) => e.outerHTML);
					const isTight = inside.x < box.x + 10 || inside.x + inside.width > right - 10;
					if (isTight) covered.push("its box is narrow");
					if (box.y < 0 || box.x < 0) covered.push("it is outside");
					return covered;
				})()`)
				assert.Empty(t, covered, "%s at %d: covered by the stamp of %s", language, width, path)
			}
			colour := browser.Evaluate[string](b, `stateOf(game, here(), 1, mine())[1]`)
			assert.Equal(t, "bad", colour, "a client that waits forever")
		}
	}
	b := opens(t, "en", "", 1366, 768)
	browser.Evaluate[any](b, `void (enter("4"), path = spelled("AlBpBpBp"), played = path.length, show())`)
	b.Contains("#board", "waits forever")
	b.Says("#board .stamp", "✓ Broken: one waits forever · a znode is left behind")
	b.Contains(`#board [data-znode]`, "left by A")
	red := browser.Evaluate[[]string](b, `[...at("board").querySelectorAll("[data-znode]")]
		.filter((e) => e.querySelector("rect").style.stroke === "var(--bad)").map((e) => e.textContent)`)
	assert.Equal(t, []string{"0left by A"}, red, "the znodes that nobody deletes")
}

// What is drawn is so: a znode is said to be left only if nobody deletes it later, and a dotted line goes from a client
// that waits to a znode that exists.
func TestWhatIsDrawnIsSoInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	seen := browser.Evaluate[struct {
		Left, Lines int
		Wrong       []string
	}](b, `(() => {
		const seen = { Left: 0, Lines: 0, Wrong: [] }, board = at("board");
		for (const [key, g] of Object.entries(games)) {
			const isKept = (point, name) => g.znodes(point).some((z) => z.name === name) && g.moves(point).every((m) => isKept(m.to, name));
			g.data.points.forEach((_, point) => {
				for (const z of g.znodes(point)) {
					if (!isOrphan(g, point, z)) continue;
					seen.Left++;
					if (!isKept(point, z.name)) seen.Wrong.push(key + ": " + z.name + " is deleted later");
				}
				board.innerHTML = queue(board.plan, g, point);
				const lines = board.querySelectorAll(".watch").length;
				seen.Lines += lines;
				const waits = [0, 1].filter((c) => g.stand(point, c).state === "waits" && !g.stand(point, c).gaveUp);
				const due = waits.flatMap((c) => g.stand(point, c).watches);
				if (lines !== due.length) seen.Wrong.push(key + ": lines at " + point);
				// A znode that has just been deleted takes its line along.
				for (const m of g.moves(point)) {
					board.innerHTML = queue(board.plan, g, point, m.to);
					const kept = due.filter((on) => g.znodes(m.to).some((z) => z.name === on));
					if (board.querySelectorAll(".watch").length !== kept.length) seen.Wrong.push(key + ": lines after " + point);
				}
			});
		}
		return seen;
	})()`)
	assert.Greater(t, seen.Left, 10)
	assert.Greater(t, seen.Lines, 10)
	assert.Empty(t, seen.Wrong)

	// A client is said to watch a znode only if it does.
	said := browser.Evaluate[struct{ Watches, Looks, Wrong []string }](b, `(() => {
		const said = { Watches: [], Looks: [], Wrong: [] };
		for (const [key, g] of Object.entries(games)) {
			game = g;
			g.data.points.forEach((_, point) => {
				for (const m of g.moves(point).filter((m) => m.deed === "pass")) {
					const text = described(m), isTold = m.came.some(([, kind]) => kind === "notification");
					const isSet = g.stand(m.to, m.client).watches.includes(m.on);
					if (text.includes("watches") && !isSet && !isTold) said.Wrong.push(key + ": " + text);
					if (text.includes("watches")) said.Watches.push(text);
					if (text.includes("still exists")) said.Looks.push(text);
				}
			});
		}
		return said;
	})()`)
	assert.Empty(t, said.Wrong)
	assert.Greater(t, len(said.Watches), 10)
	assert.Contains(t, said.Looks, "0 still exists.")
	assert.Contains(t, said.Looks, "A has read the queue: its 0 is the first; A checks that it still exists.")
	browser.Evaluate[any](b, `void enter("4")`)

	// On the small board the wire leaves room for the request.
	browser.Evaluate[any](b, `show()`)
	covered := browser.Evaluate[int](b, `[...at("second").querySelectorAll(".wait")].filter((t) => {
		const { x, y, width, height } = t.getBBox(), points = [0.2, 0.5, 0.8].map((k) => new DOMPoint(x + width / 2, y + k * height));
		return [...at("second").querySelectorAll(".wire")].some((wire) => points.some((point) => wire.isPointInStroke(point)));
	}).length`)
	assert.Zero(t, covered, "requests with a line through them")
	assert.Equal(t, 2, browser.Evaluate[int](b, `at("second").querySelectorAll(".wait").length`))
}

// The level of the half repaired lock is won by a message that is lost while a client holds the lock, and by nothing
// else: what has broken the recipe in level 1 breaks this lock too, but does not win.
func TestTheHuntForTheLostMessageInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#5.5", 1366, 768)
	wins := func(key, counts string) []string {
		return browser.Evaluate[[]string](b, fmt.Sprintf(`((g) => {
			const wins = [];
			const visit = (path) => {
				const point = path.at(-1)?.to ?? 0;
				for (const m of g.moves(point)) visit([...path, m]);
				if (%s) wins.push(path.map((m) => nameOf(m.client) + CODES[m.deed]).join(""));
			};
			visit([]);
			return wins.sort();
		})(games[%q])`, counts, key))
	}
	recipes := wins("4", fmt.Sprintf(`g.end(point)?.wrong.includes(%q)`, explore.TwoInside))
	assert.Len(t, recipes, 20)
	assert.Equal(t, recipes, wins(locks.PartA, `g.end(point)?.wrong.length`), "what breaks this lock")
	const isWin = `g.end(point) && reaches(level.goals[0], g, path, games["4"])`
	found := wins(locks.PartA, isWin)
	assert.Len(t, found, 70)
	lost := fmt.Sprintf(`g.end(point) && faultOf(path).startsWith("lose") && wrongBeside(g, path, games["4"]).includes(%q) &&
		[0, 1].some((c) => g.stand(path[path.findIndex(isFault) - 1]?.to ?? 0, c).state.match(/holds|releases/))`, explore.WaitsOn)
	assert.Equal(t, wins(locks.PartA, lost), found, "each message that is lost after a client held the lock")

	cards := func() []string {
		return browser.Evaluate[[]string](b, `[...document.querySelectorAll(".goal small")].map((e) => e.textContent)`)
	}
	const isOpen, isLost = "not found yet", "out of reach from here"
	assert.Equal(t, []string{isOpen, isOpen}, cards())
	b.Says("#asks b", "Which lost message then leaves the other waiting forever with the recipe, on the right, but not here?")
	b.Says("#goals b", "Goes on here; the recipe waits forever")

	// Of a message that is lost before anybody holds the lock, it is said that this is too early.
	press(b, "turn-0", "go-0-lose-reply")
	assert.Equal(t, []string{isLost, isLost}, cards())
	for !browser.Evaluate[bool](b, `moves().length === 0`) {
		press(b, browser.Evaluate[string](b, `document.querySelector("[data-key^=go-]").dataset.key`))
	}
	b.Contains("#beside-says", "This breaks the recipe: One waits forever")
	b.Says("#says", "It held: A is done; B is done. Not yet: nobody held the lock when the message was lost.")
	b.Until(`at("every").hidden && at("repair").hidden && at("next").hidden`)

	// The moves of level 1.
	b.Do(chromedp.Click(chromedp.CSS("#again")))
	press(b, "go-0", "go-0", "go-1", "client-0", "go-0-expire", "go-1")
	b.Contains("#says", "You broke it, in 5 choices: Two hold it.")
	b.Contains("#beside-says", "This is also wrong here: Two hold it.")
	assert.Equal(t, []string{isOpen, "you: 5; fewest: 5 ★"}, cards())
	b.Says("#code ins", "+ return newHold(l, mine, connection, stat.Pzxid), nil")
	b.Until(`at("next").hidden`)
	b.Says("#hunt.main", "Hunt on: Goes on here; the recipe waits forever")

	b.Do(chromedp.Click(chromedp.CSS("#hunt")))
	press(b, "go-0", "go-0", "go-0", "turn-0", "go-0-lose-request", "go-0", "go-1", "go-1", "go-1", "go-1")
	b.Says("#board.mended .stamp", "✓ Goes on here; the recipe waits forever")
	b.Contains("#says", "You found it, in 9 choices.")
	b.Contains("#says", "A's delete was lost, so A deleted again, until the server answered.")
	b.Contains("#second", "waits forever")
	b.Contains("#beside-says", "This breaks the recipe: One waits forever; A znode is left behind.")
	assert.Equal(t, []string{"you: 9; fewest: 9 ★", "you: 5; fewest: 5 ★"}, cards())
	b.Says("#code ins", "+ for {")
	b.Says("#step", "The repair, in step 5 →")
	b.Until(`at("step").getAttribute("href") === "step05.html"`)
	b.Until(`at("hunt").hidden && !at("next").hidden && !at("link").hidden`)

	// The end of the last level lists what was met.
	browser.Evaluate[any](b, `void (enter("5"), hasGivenUp = true, show())`)
	b.Contains("#met", "✓ the half repaired lock: a message is lost → ask again")
	b.Contains("#met", "○ the recipe: not found yet")
	browser.Evaluate[any](b, `void (store.set("zklock-network-4", '{"2":6}'), show())`)
	b.Contains("#met", "○ the recipe: not found yet") // nor did two hold it
	browser.Evaluate[any](b, `void (store.set("zklock-network-4", '{"0":5}'), show())`)
	b.Contains("#met", "✓ the recipe: a session ends, and its client goes on → connection lost, the hold ends")
	assert.Equal(t, 4, browser.Evaluate[int](b, `at("met").children.length`))
}

// Neither a choice nor a ✓ moves what stands beside or below it. An open menu hides no name.
func TestNothingShiftsInABrowser(t *testing.T) {
	t.Parallel()
	for _, width := range []int{390, 1366} {
		b := opens(t, "en", "#4", width, 844)
		tabs := func() string {
			return browser.Evaluate[string](b,
				`[...at("levels").children].map((e) => Math.round(e.getBoundingClientRect().x)).join()`)
		}
		foot := func() int {
			return browser.Evaluate[int](b, `Math.round((isNarrow.matches ? at("help") : document.querySelector("footer"))
				.getBoundingClientRect().top + scrollY)`)
		}
		before, place := tabs(), foot()
		for _, l := range hunts {
			browser.Evaluate[any](b, fmt.Sprintf(`void enter(%q)`, l.Key))
			assert.Equal(t, before, tabs(), "the tabs at %d, on %s", width, l.Key)
		}
		browser.Evaluate[any](b, `void enter("4")`)
		for _, key := range []string{"go-0", "go-0", "go-1", "go-1", "go-1"} {
			press(b, key)
			assert.Equal(t, place, foot(), "what comes last at %d, after %s", width, key)
		}
		press(b, "client-0")
		b.Contains("#board", "ZooKeeper")
		browser.Evaluate[any](b, `void (store.set("zklock-network-4", '{"0":5}'), show())`)
		b.Says(`#levels [data-key="4"] i`, "✓")
		assert.Equal(t, before, tabs(), "the tabs at %d, with a ✓", width)
	}
}

// The line above the board says what can be pressed now. The first chip shows it once.
func TestTheLineThatSaysHowInABrowser(t *testing.T) {
	t.Parallel()
	b := opens(t, "en", "#4", 1366, 768)
	b.Says("#how", "Press a request, or drag it down, to deliver it.")
	b.Contains("#says", "Nothing here is simulated")
	assert.Equal(t, 1, browser.Evaluate[int](b, `document.querySelectorAll(".pulses").length`))
	press(b, "go-0")
	assert.Zero(t, browser.Evaluate[int](b, `document.querySelectorAll(".pulses").length`))
	browser.Evaluate[any](b, `void enter("W23")`)
	assert.Zero(t, browser.Evaluate[int](b, `document.querySelectorAll(".pulses").length`))
	b.Says("#how", "Press to deliver. Or make one thing go wrong: ✂ loses a message; press A or B for the rest.")
	browser.Evaluate[any](b, `void (level = { ...level, coins: 0, goals: [{ kind: "none", least: [] }] }, show())`)
	b.Says("#how", "Press a request, or drag it down, to deliver it.")
	press(b, "go-0")
	b.Says("#how", "Press a request, or drag it down, to deliver it.")

	// The scissors open what can be lost, as a client what can happen to it.
	browser.Evaluate[any](b, `void enter("4")`)
	press(b, "turn-0")
	b.Says("#how", "Choose what happens to A, or press elsewhere to cancel.")
	b.Contains("#board", "lose requestlose reply")
	assert.Zero(t, browser.Evaluate[int](b, `document.querySelectorAll('[data-chip="0"]').length`), "chips below the menu")
	press(b, "turn-1") // another menu
	b.Until(`document.querySelectorAll("[data-key^=go-0-]").length === 0`)
	b.Do(chromedp.Click(chromedp.CSS("#asks"))) // anywhere else
	b.Until(`document.querySelectorAll("[data-key^=go-1-]").length === 0`)
	b.Says("#how", "Press a request, or drag it down, to deliver it.")
	press(b, "turn-0", "go-0-lose-reply")
	b.Contains("#says", "A: create znode: reply lost.")

	browser.Evaluate[any](b, `void (enter("4"), path = rest(game, 0), played = path.length, show())`)
	b.Contains("#says", "It held: A is done; B is done. The fault is not spent. Try another.")
	b.Says("#how", "The end: take choices back, or begin again.")
}

// A word is explained from where it first stands on the page.
func TestTheTermsInABrowser(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "zh-CN"} {
		b := opens(t, language, "#4", 1366, 768)
		terms := func() int {
			return browser.Evaluate[int](b, `[...document.querySelectorAll("#terms dt")].filter((e) => e.checkVisibility()).length`)
		}
		assert.Equal(t, 4, terms(), "client, lock, recipe, znode, in %s", language)
		press(b, "client-0")
		assert.Equal(t, 6, terms(), "and session, and gives up, in %s", language)
		browser.Evaluate[any](b, `void enter("W23")`)
		assert.Equal(t, 7, terms(), "and Lock, in %s", language)
		assert.Equal(t, "Lock", browser.Evaluate[string](b, `[...document.querySelectorAll("#terms dt")]
			.filter((e) => e.checkVisibility()).at(-1).textContent`))
		for _, path := range []string{"4/ApApBpBp", "5/Al", "W19/ApApBpBlBp", "5.5/ApApBpAxBp"} {
			browser.Evaluate[any](b, fmt.Sprintf(`void (([key, code]) => { enter(key); path = spelled(code); played = path.length; show(); })(%q.split("/"))`, path))
		}
		browser.Evaluate[any](b, `void (enter("5"), (() => {
			const looks = (path) => [0, 1].some((c) => READS.includes(game.stand(path.at(-1).to, c).op) && request(game.stand(path.at(-1).to, c)).match(/look at|查看/));
			let all = [[]];
			while (!all.some((p) => p.length && looks(p))) all = all.flatMap((p) => game.moves(p.at(-1)?.to ?? 0).map((m) => [...p, m]));
			path = all.find(looks);
			played = path.length;
			show();
		})())`)
		assert.Equal(t, browser.Evaluate[int](b, `document.querySelectorAll("#terms [data-when]").length`), terms(), "all, in %s", language)
	}
}
