package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The invariants, by what is said when one is broken.
const (
	twoInside   = "two clients are inside"
	waitsOn     = "nobody is inside, and a client waits for ever"
	noReturn    = "a call does not come back"
	leftBehind  = "a znode is left behind"
	notAllowed  = "a call fails that should not"
	hidesLoss   = "Unlock does not tell that the session has ended"
	tokenTooLow = "a token is not greater than the one before"
	wakesMany   = "a release wakes more than one"
	asksOn      = "a client asks again and again"
)

// Chinese is what the invariants are called on a Chinese page.
var Chinese = map[string]string{
	twoInside:   "两个客户端同时在临界区里",
	waitsOn:     "没有人持有锁，却有客户端永远等下去",
	noReturn:    "有一次调用没有返回",
	leftBehind:  "留下了一个 znode",
	notAllowed:  "有一次调用不该失败却失败了",
	hidesLoss:   "会话已经结束，Unlock 却没有说",
	tokenTooLow: "有一个令牌不大于前一个",
	wakesMany:   "一次释放唤醒了不止一个",
	asksOn:      "有一个客户端一再询问，没有尽头",
}

// looksInside looks at who is inside. Readers may be inside together.
func (p *player) looksInside(r *Run) {
	var inside []int
	writes := false
	for i, c := range p.clients {
		if c.isInside() {
			inside = append(inside, i)
			writes = writes || i >= p.Readers
			p.looksAtToken(r, i, c)
		}
	}
	if len(inside) > 1 && writes {
		r.Wrong = append(r.Wrong, twoInside)
	}
	if p.WakesOne && p.woken > 1 {
		r.Wrong = append(r.Wrong, wakesMany)
	}
}

// looksAtToken looks whether the token of a new holder is greater than those before.
func (p *player) looksAtToken(r *Run, i int, c *contender) {
	isReader := i < p.Readers
	hasToBeGreater := c.way.HasHolds() && !isReader
	if !hasToBeGreater || c.counted {
		return
	}
	c.counted = true
	token := c.held.Token()
	if token <= p.token {
		r.Wrong = append(r.Wrong, tokenTooLow)
	}
	p.token = token
}

// judge looks at what is left when nothing more can come.
func (p *player) judge(r *Run) error {
	var ends []string
	for _, c := range p.clients {
		c.mu.Lock()
		end, wrong := c.end()
		c.mu.Unlock()
		ends = append(ends, end)
		if wrong != "" && !slices.Contains(r.Wrong, wrong) {
			r.Wrong = append(r.Wrong, wrong)
		}
	}
	if slices.Contains(r.Wrong, waitsOn) {
		if err := p.looksForTimers(); err != nil {
			return err
		}
	}
	left, err := p.leftBehind()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		r.Wrong = append(r.Wrong, leftBehind)
		ends = append(ends, fmt.Sprintf("what stays: %v", strings.Join(left, ", ")))
	}
	r.Outcome = strings.Join(ends, "; ")
	return nil
}

// Outcome is how an order ended in which these invariants are broken.
func Outcome(wrong []string) string { return strings.Join(wrong, "; ") }

// aWhile is how long a client that waits for ever is looked at: some ask once a second.
const aWhile = 1200 * time.Millisecond

// looksForTimers looks whether a client that waits for ever really does, until one has been
// seen that does. The explorer does not see a timer that somebody waits for.
func (p *player) looksForTimers() error {
	if p.looked {
		return nil
	}
	time.Sleep(aWhile)
	if err := p.settle(); err != nil {
		return err
	}
	if len(p.choices()) > 0 {
		return errors.New("a client goes on by itself after a while: it keeps time, and that is not explored")
	}
	p.looked = true
	return nil
}

// end tells how an order has ended for a client, and what is wrong with that. The caller
// has c.mu.
func (c *contender) end() (end string, wrong string) {
	switch {
	case c.crashed:
		return fmt.Sprintf("%v crashed", c.name), ""
	case c.call == "Lock" && c.gaveUp:
		return fmt.Sprintf("%v gave up, and its Lock does not come back", c.name), noReturn
	case c.call == "Lock":
		return fmt.Sprintf("%v waits for ever", c.name), waitsOn
	case c.call == "Unlock":
		return fmt.Sprintf("%v waits for its Unlock", c.name), noReturn
	case c.err != nil && !c.mayFail():
		return fmt.Sprintf("%v fails", c.name), notAllowed
	case c.err != nil:
		return fmt.Sprintf("%v fails as it may", c.name), ""
	case c.lost && c.way.HasHolds():
		return fmt.Sprintf("%v is not told of its loss", c.name), hidesLoss
	}
	return fmt.Sprintf("%v is done", c.name), ""
}

// mayFail tells whether the error of the client's last call is one that the lock may give.
// The caller has c.mu.
func (c *contender) mayFail() bool {
	if c.gaveUp && errors.Is(c.err, context.Canceled) {
		return true
	}
	givesHolds := c.way.HasHolds()
	if givesHolds {
		return c.lost // it promises to survive all else
	}
	return c.expired || c.faulty
}

// leftBehind lists the znodes in the directory of whose owners none waits.
func (p *player) leftBehind() (left []string, err error) {
	names, _, err := p.eye.Children(p.path)
	if err != nil {
		return nil, fmt.Errorf("list %s: %v", p.path, err)
	}
	waiting := map[int64]bool{}
	for _, c := range p.clients {
		c.mu.Lock()
		if c.call != "" || c.inside {
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
