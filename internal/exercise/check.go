package exercise

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zklock/internal/explore"
	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// patience is how long a story waits while nothing moves. patienceAlone is the same for a story
// that had no verdict, and runs once more, alone.
const (
	patience      = 10 * time.Second
	patienceAlone = 30 * time.Second
)

// places limits how many stories run at the same time. There are more places than processors,
// because stories mostly wait.
var places = make(chan struct{}, 4*runtime.NumCPU())

// everyOrder is the last question of a check.
const everyOrder = "every interleaving"

// Check asks a learner's lock for the properties of an exercise, one after the other, and stops at
// the first that the lock lacks. If the lock has all of them, Check also reports on the
// interleavings of two clients. Check stores in the folder of the test how far the lock has come.
//
// In step 1 the second lock is the one that is free again after a crash: NewEphemeral's.
func Check(t *testing.T, e Exercise, locks ...property.Subject) {
	locks[0].Name = "mine " + e.Name
	explore.Acts(locks[0]) // make play and make explore start this test as a client of the lock
	if here, err := os.Getwd(); err == nil && filepath.Base(here) == "exercise" {
		t.Skipf("this is the starter: make exercise STEP=%s copies it to %s", e.Name, e.Dir())
	}
	locks[0] = locks[0].Elsewhere(t.Name())
	zktest.LeavesGoroutines() // Main does not check a learner's package for goroutines
	server, err := zktest.Shared()
	if err != nil {
		t.Fatal(err)
	}
	p := progressIn(".")
	most := p.reached()
	p = Progress{Begun: true, Most: most, Missing: canBeUsed, Hints: p.Hints}
	keep := func() { // each time, because the lock may end the process
		if err := p.keep("."); err != nil {
			t.Error(err)
		}
	}
	keep()
	isAll := true
	root, orders := zktest.NewOn(t, server).Root, make(chan ordersAnswer, 1)
	play := sync.OnceFunc(func() {
		if e.hasOrders() {
			go func() { orders <- e.playOrders(t.Context(), server, root) }()
		}
	})
	for a := range e.answers(t.Context(), server, locks) {
		isAsked := false
		t.Run(a.question, func(t *testing.T) {
			isAsked = true
			a.tell(t, e, e.pageAt(a.question, most))
		})
		if !isAsked { // -run has left this one out
			isAll = false
			continue
		}
		if t.Failed() {
			p.Missing, p.About, p.Ask, p.Stuck = a.question, a.hints, a.fits, a.isStuck()
			keep()
			if passed, all := e.Count(p); passed > 0 {
				fmt.Fprintln(t.Output(), InWords(lang.Of(
					"%d of %d hold. The others are checked when this one holds.",
					"%d 条已具备，共 %d 条。其余的，等具备了这一条再检查。",
					passed, all)))
			}
			done := e.stairsDone(p.Held)
			switch {
			case a.verdict == property.No && e.heldBefore(a.question, most):
				fmt.Fprintln(t.Output(), InWords(lang.Both(
					"this one held before: a change of yours since then broke it",
					"这一条以前是具备的：你后来的改动弄坏了它")))
			case done > 0:
				fmt.Fprintln(t.Output(), InWords(lang.Of(
					"stair 5.%[1]d done; next: %[2]v", "台阶 5.%[1]d 完成；下一级：%[3]v", done, a.question, a.name)))
			}
			return
		}
		if a.question != canBeUsed {
			p.Held++
		}
		if a.question == property.Tries.String() {
			p.LeftOut = a.verdict == property.Void
		}
		p.Missing = ""
		if p.Held < len(e.Properties) {
			p.Missing = e.Properties[p.Held].String()
		}
		keep()
		if isAll && p.Held == len(e.Properties)/2 {
			play() // meanwhile the long hold runs
		}
	}
	if e.hasOrders() {
		t.Run(everyOrder, func(t *testing.T) {
			play()
			(<-orders).tell(t, e)
		})
		if t.Failed() {
			p.Missing = everyOrder
		}
	}
	keep()
	zktest.AfterRun(func(passed bool) {
		p.Done = isAll && passed
		keep()
	})
}

// An answer is what the check has found out about one of its questions.
type answer struct {
	question string    // canBeUsed, or the English name of the property
	name     lang.Text // the same in both languages
	verdict  property.Verdict
	seen     string
	ask      lang.Text // a question for the learner
	fits     lang.Text // the same, if it fits better than the question of the property
	hints    string    // the section of hints that fits what was seen; "": that of the question
}

func (a answer) holds() bool { return a.verdict.Accepted() }

// isStuck reports whether the question has no answer, because the story waited for something that
// did not happen.
func (a answer) isStuck() bool { return a.verdict == property.Stuck }

// tell prints the answer in the reader's language. What was seen is in English. page is where to read more.
func (a answer) tell(t *testing.T, e Exercise, page lang.Text) {
	say := func(text lang.Text) { fmt.Fprintln(t.Output(), InWords(text)) }
	if a.holds() {
		say(lang.Of("✓ %[1]v", "✓ %[2]v：%[1]v", a.seen, a.name))
		return
	}
	t.Fail()
	say(lang.Of("%[1]v seen: %[3]v", "%[1]v %[2]v\n  看到的：%[3]v", string(a.verdict), a.name, a.seen))
	say(lang.Of("  ask yourself: %v", "  问问自己：%v", a.ask))
	say(lang.Of("  more: %v, and %v", "  想知道更多：%v，以及%v", Command("hint", e.Name), e.reading(page)))
}

// answers checks as many properties at the same time as there are places, because most of their
// time is spent waiting. It yields the answers in the order of the properties. It stops when the
// caller wants no more of them, or when the lock cannot be used. A property without a verdict is
// checked once more, alone.
func (e Exercise) answers(
	ctx context.Context,
	server *zkserver.Server,
	locks []property.Subject,
) iter.Seq[answer] {
	return func(yield func(answer) bool) {
		ctx, enough := context.WithCancel(ctx)
		defer enough()
		locks = slices.Clone(locks)
		for i := range locks { // a learner's test says it of the first
			locks[i].Znode, locks[i].NotHeld = locks[0].Znode, locks[0].NotHeld
		}
		first := e.use(server, locks[0])
		for _, other := range locks[1:] {
			if first.holds() {
				first = e.use(server, other)
			}
		}
		if !yield(first) || !first.holds() {
			return
		}
		told := func(p *property.Property, patience time.Duration) property.Result {
			return ask(ctx, patience, server, p, locks)
		}
		coming := map[*property.Property]chan property.Result{}
		for _, p := range e.Properties {
			coming[p] = make(chan property.Result, 1)
		}
		go func() {
			for _, p := range e.inOrder() {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				go func() {
					coming[p] <- property.Beside(func() property.Result { return told(p, patience) })
					<-places
				}()
			}
		}()
		for _, p := range e.Properties {
			r := <-coming[p]
			r = r.OrAlone(func() property.Result { return told(p, patienceAlone) })
			if !yield(answerOf(p, r)) {
				return
			}
		}
	}
}

// inOrder lists the properties in the order in which their checks start. Most unfinished locks lack
// one of the first properties, so these come first, and the learner gets the answer soon. The long
// hold takes six seconds, and the lag needs three servers. These two come next: if they started
// last, the learner would wait for them at the end.
func (e Exercise) inOrder() []*property.Property {
	const firsts = 4
	isLong := func(p *property.Property) bool { return p == property.LongHold || p == property.LaggingServer }
	var long, others []*property.Property
	for _, p := range e.Properties[firsts:] {
		if isLong(p) {
			long = append(long, p)
		} else {
			others = append(others, p)
		}
	}
	return slices.Concat(e.Properties[:firsts], long, others)
}

// ask checks one property. In step 1 there are two locks, and both must have it, but the first is not free again after a
// crash.
func ask(
	ctx context.Context,
	patience time.Duration,
	server *zkserver.Server,
	p *property.Property,
	locks []property.Subject,
) (r property.Result) {
	if p == property.CrashFrees {
		locks = locks[len(locks)-1:]
	}
	for i, lock := range locks {
		r = property.CheckUntil(ctx, patience, server, lock, p)
		if !r.Verdict.Accepted() {
			if i > 0 {
				r.Evidence = "with NewEphemeral, " + r.Evidence
			}
			return r
		}
	}
	return r
}

// answerOf makes an answer of a result.
func answerOf(p *property.Property, r property.Result) answer {
	a := answer{question: p.String(), name: p.Name, verdict: r.Verdict, seen: r.Evidence, ask: r.About.Question}
	if r.NoServer {
		a.ask = lang.Both(
			"this is not about your lock, which has not been used yet: can this machine start the servers?",
			"这与你的锁无关，测试还没有用到它：这台机器能启动服务器吗？",
		)
		return a
	}
	if r.About != p {
		a.hints, a.fits = r.About.String(), r.About.Question
	}
	if a.isStuck() {
		a.seen = fmt.Sprintf("no verdict: %s. The last requests: %s", r.Evidence, r.Asked)
		if r.Again { // then it is hardly the machine
			a.seen = "twice, " + strings.TrimPrefix(a.seen, "no verdict: ")
			a.ask = lang.Text{
				EN: fmt.Sprintf("does your lock wait for something that never happens? And %s", a.ask.EN),
				ZH: fmt.Sprintf("你的锁是不是在等一件永远不会发生的事？%s", a.ask.ZH),
			}
			return a
		}
		a.ask = lang.Text{
			EN: "is this machine busy? Or does your lock wait for something that never happens: " +
				"what should wake it, and whose znode still exists?",
			ZH: "是不是这台机器太忙？或者，你的锁在等一件永远不会发生的事：该由谁唤醒它？谁的 znode 还在？",
		}
	}
	return a
}

// hasOrders reports whether the interleavings of two clients can be played. They cannot if waiters
// poll, as in the first two steps.
func (e Exercise) hasOrders() bool { return e.IsStep() && e.Name != "1" && e.Name != "2" }

// ordersAnswer is what was found in the interleavings of two clients.
type ordersAnswer struct {
	found explore.Answer
	err   error
}

// playOrders looks for an interleaving of the requests of one client or two, with or without faults, in
// which the lock is wrong. A property is a situation that somebody has thought of. This finds those that
// nobody has thought of. On an idle machine it takes a few seconds, and nowhere more than two minutes.
func (e Exercise) playOrders(ctx context.Context, server *zkserver.Server, root string) ordersAnswer {
	found, err := explore.Mine(ctx, server.Servers(), root, e.Name, "")
	return ordersAnswer{found, err}
}

func (a ordersAnswer) tell(t *testing.T, e Exercise) {
	holds, says := a.words(e)
	fmt.Fprintln(t.Output(), InWords(says))
	if !holds {
		t.Fail()
	}
}

// words returns what to print about the interleavings. The wrong interleaving itself is in English.
func (a ordersAnswer) words(e Exercise) (holds bool, says lang.Text) {
	found := a.found
	switch {
	case a.err != nil:
		return false, lang.Of(
			"? the interleavings could not be played: %v\n  is this machine busy? Run the test once more. If this comes "+
				"twice, your lock itself depends on the time: where does it look at a clock, a state or a connection?",
			"? 没能走完各种交错次序：%v\n  是不是这台机器太忙？请再运行一次测试。要是还这样，就是你的锁本身与时间有关："+
				"它在哪里看了时钟、状态或连接？",
			a.err)
	case found.Wrong != "":
		wrong := lang.Both(found.Wrong, explore.Chinese[found.Wrong])
		return false, lang.Of(
			"✗ interleavings: %d played, and in one of them %v:\n%s\n"+
				"  more: make explore STEP=mine%s %s plays more of them, and draws this one",
			"✗ 交错次序：走了 %d 种，在其中一种里，%v：\n%s\n"+
				"  更多：make explore STEP=mine%s %s 会走更多的交错次序，并把这一个画出来",
			found.Orders, wrong, strings.Join(found.Story, "\n"), e.Name, found.Flags)
	case found.Differs:
		return true, lang.Of(
			"– interleavings: %d played, none wrong. The others cannot be played: after the same replies, your lock does not "+
				"always send the same requests in the same order. Do several goroutines send them? That is no mistake",
			"– 交错次序：走了 %d 种，没有一种出错。其余的没法走：收到同样的响应以后，你的锁发出的请求或者它们的顺序并不总是一样。"+
				"是不是有几处同时在发？这不算错",
			found.Orders)
	case !found.All:
		return true, lang.Of(
			"✓ interleavings: %d played, none wrong. There was no time for the others: make explore STEP=mine%s plays more",
			"✓ 交错次序：走了 %d 种，没有一种出错。其余的没有时间走：make explore STEP=mine%s 会走更多的",
			found.Orders, e.Name)
	}
	return true, lang.Of(
		"✓ interleavings: %d played, none wrong",
		"✓ 交错次序：走了 %d 种，没有一种出错",
		found.Orders)
}

// chapter returns the page to read about a question of the check.
func (e Exercise) chapter(question string) lang.Text {
	page := "docs/next"
	switch {
	case e.isInPartB(question):
		page = filepath.Join(e.Home, "holder")
	case e.IsStep():
		page = filepath.Join(e.Home, "README")
	}
	return lang.Text{EN: page + ".md", ZH: page + ".zh-CN.md"}
}

// reading says what to read of a page, in the book, where no file of the solution lies beside it: of a chapter whose
// code solves the exercise, the section that does not.
func (e Exercise) reading(page lang.Text) lang.Text {
	name := inTheBook(page.EN)
	if !e.IsStep() || e.Name == Step5.Name {
		return lang.Of("%v in the book", "书里的 %v", name)
	}
	return lang.Of(`"The idea" in %v in the book`, "书里 %v 的“思路”一节", name)
}

// inTheBook is the name of a page in the book: step05.html and step05-holder.html are the two of step 5's folder.
func inTheBook(page string) string {
	base := strings.TrimSuffix(filepath.Base(page), ".md")
	step, _, isChapter := strings.Cut(filepath.Base(filepath.Dir(page)), "_")
	switch {
	case isChapter && base == "README":
		return step + ".html"
	case isChapter:
		return step + "-" + base + ".html"
	}
	return base + ".html"
}

// heldBefore reports whether a question is one that an earlier check has answered with yes: it was about canBeUsed, or
// one of the first most properties.
func (e Exercise) heldBefore(question string, most int) bool {
	at := slices.IndexFunc(e.Properties, func(p *property.Property) bool { return p.String() == question })
	return most > 0 && at < most // canBeUsed is at -1, before the first
}

// pageAt returns the page to read about a question. If it held before, the learner has come further since then, and
// reads on there.
func (e Exercise) pageAt(question string, most int) lang.Text {
	if !e.heldBefore(question, most) {
		return e.chapter(question)
	}
	return e.chapter(e.Properties[min(most, len(e.Properties)-1)].String())
}

// isInPartB reports whether step 5's part B, which begins with LostApart, is about a question.
func (e Exercise) isInPartB(question string) bool {
	if e.Name != Step5.Name {
		return false
	}
	first := slices.Index(e.Properties, property.LostApart)
	return slices.ContainsFunc(e.Properties[first:], func(p *property.Property) bool { return p.String() == question })
}
