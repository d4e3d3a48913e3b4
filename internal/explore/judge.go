package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lang"
)

// The invariants. Each constant is the message that reports a violation.
const (
	TwoInside   = "two clients hold the lock at once"
	WaitsOn     = "nobody holds the lock, and a client waits forever"
	noReturn    = "a call does not return"
	LeftBehind  = "a znode is left behind"
	NotAllowed  = "a call that should succeed fails"
	hidesLoss   = "Unlock does not report that the session has ended"
	tokenTooLow = "a token is not greater than the one before"
	wakesMany   = "a release wakes more than one"
	asksOn      = "a client polls without end"
)

// Chinese has the message of each invariant for a Chinese page.
var Chinese = map[string]string{
	TwoInside:   "两个客户端同时持有锁",
	WaitsOn:     "没有人持有锁，却有客户端永远等下去",
	noReturn:    "有一次调用没有返回",
	LeftBehind:  "留下了一个节点",
	NotAllowed:  "有一次调用不该失败却失败了",
	hidesLoss:   "会话已经结束，Unlock 却没有报告",
	tokenTooLow: "有一个令牌不大于前一个",
	wakesMany:   "一次释放唤醒了不止一个客户端",
	asksOn:      "有一个客户端无休止地轮询",
}

// Gravest lists the invariants, the most serious first.
var Gravest = []string{
	TwoInside, WaitsOn, LeftBehind, tokenTooLow, hidesLoss, noReturn, NotAllowed, wakesMany, asksOn,
}

// Should has, for each invariant, a sentence about what a lock should do.
var Should = map[string]lang.Text{
	TwoInside: {
		EN: "Two clients must never hold the lock at the same time, whichever message is lost.",
		ZH: "无论丢失了哪条消息，都不能有两个客户端同时持有锁。",
	},
	WaitsOn: {
		EN: "When nobody holds the lock, the next client that waits should get it.",
		ZH: "没有人持有锁的时候，下一个等待的客户端应该拿到它。",
	},
	LeftBehind: {
		EN: "A client that has left should leave no znode in the queue: it would block all clients behind it.",
		ZH: "客户端离开以后，队列里不该留下它的 znode：那会挡住排在后面的所有客户端。",
	},
	tokenTooLow: {
		EN: "Each holder should get a greater token than the one before, so that a store can refuse a late write.",
		ZH: "每个持有者的令牌都应该大于前一个，这样存储才能拒绝迟到的写入。",
	},
	hidesLoss: {
		EN: "When a client's session has ended, Unlock should tell it that it has lost the lock.",
		ZH: "会话已经结束的客户端调用 Unlock 时，应该得知自己已经丢了锁。",
	},
	noReturn: {
		EN: "Each call should return: with the lock, or with an error.",
		ZH: "每次调用都应该返回：要么拿到锁，要么返回错误。",
	},
	NotAllowed: {
		EN: "A call should fail only if its caller has given up, or after a fault that this lock does not promise to survive.",
		ZH: "只有调用者已经放弃等待，或者出了这把锁不承诺能承受的故障，调用才可以失败。",
	},
	wakesMany: {
		EN: "A release should wake one client: the next.",
		ZH: "一次释放应该只唤醒一个客户端，也就是下一个。",
	},
	asksOn: {
		EN: "A client that waits should wait for a notification, and not poll.",
		ZH: "等待的客户端应该等通知，而不是轮询。",
	},
}

// looksInside checks the clients that hold the lock, and the tokens of new holders. Only readers
// may hold the lock at the same time. It also checks how many waiters a release has woken.
func (p *player) looksInside(r *Run) {
	var inside []int
	writes := false
	for i, c := range p.clients {
		if actor.IsInside(c.State()) {
			inside = append(inside, i)
			writes = writes || i >= p.Readers
			p.looksAtToken(r, i, c)
		}
	}
	if len(inside) > 1 && writes {
		r.Wrong = append(r.Wrong, TwoInside)
	}
	if p.WakesOne && p.woken > 1 {
		r.Wrong = append(r.Wrong, wakesMany)
	}
}

// looksAtToken checks, once for each writer, that its token is greater than the one of the writer
// before it.
func (p *player) looksAtToken(r *Run, i int, c *client) {
	isReader := i < p.Readers
	hasToBeGreater := c.way.HasHolds() && !isReader
	if !hasToBeGreater || c.counted {
		return
	}
	c.counted = true
	token := c.Held().Token()
	if token <= p.token {
		r.Wrong = append(r.Wrong, tokenTooLow)
	}
	p.token = token
}

// judge checks the final state of an interleaving: how each client ended, and which znodes still
// exist.
func (p *player) judge(r *Run) error {
	r.Ends = nil
	for _, c := range p.clients {
		c.mu.Lock()
		end, wrong := c.end()
		c.mu.Unlock()
		r.Ends = append(r.Ends, end)
		if wrong != "" && !slices.Contains(r.Wrong, wrong) {
			r.Wrong = append(r.Wrong, wrong)
		}
	}
	if slices.Contains(r.Wrong, WaitsOn) {
		if err := p.looksForTimers(); err != nil {
			return err
		}
	}
	left, err := p.LeftBehind()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		r.Wrong = append(r.Wrong, LeftBehind)
		r.Ends = append(r.Ends, lang.Of("what is left behind: %v", "留下的节点：%v", strings.Join(left, ", ")))
	}
	var ends []string
	for _, end := range r.Ends {
		ends = append(ends, end.EN)
	}
	r.Outcome = strings.Join(ends, "; ")
	return nil
}

// Outcome is the outcome of an interleaving that ends because it breaks these invariants.
func Outcome(wrong []string) string { return strings.Join(wrong, "; ") }

// aWhile is how long a client that seems to wait forever is observed: some clients poll once a
// second.
const aWhile = 1200 * time.Millisecond

// looksForTimers checks that the clients that seem to wait forever send nothing later: the explorer
// does not see a timer that a client waits for. A player checks this only until it has once found
// no timer.
func (p *player) looksForTimers() error {
	if p.looked {
		return nil
	}
	time.Sleep(aWhile)
	if err := p.settle(); err != nil {
		return err
	}
	if len(p.choices()) > 0 {
		return errors.New("a client sends a request after a pause: it uses a timer, and timers are not explored")
	}
	p.looked = true
	return nil
}

// end returns how an interleaving has ended for a client, and the invariant that this breaks, or
// "". The caller holds c.mu.
func (c *client) end() (end lang.Text, wrong string) {
	says := func(en, zh string) lang.Text { return lang.Of(en, zh, c.name) }
	switch {
	case c.hasCrashed():
		return says("%v crashed", "%v 崩溃了"), ""
	case c.State() == actor.Waits && c.gaveUp:
		return says("%v gave up, and its Lock does not return", "%v 放弃了等待，可是它的 Lock 没有返回"), noReturn
	case c.State() == actor.Waits:
		return says("%v waits forever", "%v 永远等下去"), WaitsOn
	case c.State() == actor.Releases:
		return says("%v has called Unlock, which does not return", "%v 的 Unlock 没有返回"), noReturn
	case c.err != nil && !c.mayFail():
		return says("%v got an error, and should not", "%v 得到错误，可是它不该失败"), NotAllowed
	case c.err != nil:
		return says("%v got an error, which is allowed after such a fault", "%v 得到错误；出了这种故障，失败是允许的"), ""
	case c.lost && c.way.HasHolds():
		return says("%v does not learn that it has lost the lock", "%v 没有得知自己丢了锁"), hidesLoss
	}
	return says("%v is done", "%v 完成了"), ""
}

// mayFail reports whether the lock may return the error of the client's last call. The caller holds
// c.mu.
func (c *client) mayFail() bool {
	if c.gaveUp && errors.Is(c.err, context.Canceled) {
		return true
	}
	givesHolds := c.way.HasHolds()
	if givesHolds {
		return c.lost // the lock has to survive everything else
	}
	return c.expired || c.faulty
}

// LeftBehind lists the znodes in the directory, except those of clients that are not done.
func (p *player) LeftBehind() (left []string, err error) {
	names, _, err := p.eye.Children(p.path)
	if err != nil {
		return nil, fmt.Errorf("list %s: %v", p.path, err)
	}
	waiting := map[int64]bool{}
	for _, c := range p.clients {
		c.mu.Lock()
		if !c.isDone() {
			waiting[c.session.Conn().SessionID()] = true
		}
		c.mu.Unlock()
	}
	for _, name := range names {
		there, stat, err := p.eye.Exists(p.path + "/" + name)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %v", name, err)
		}
		if there && !waiting[stat.EphemeralOwner] {
			left = append(left, p.story.short(p.path+"/"+name))
		}
	}
	slices.Sort(left)
	return left, nil
}
