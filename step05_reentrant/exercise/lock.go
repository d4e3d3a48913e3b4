// Package reentrant is step 5, for you to write: the queue of step 4, with an answer to what
// fails around it. A reply is lost, the holder's own code locks again, the connection breaks.
//
// What stands here is step 4 in a new form: a Session in place of the connection, and Lock
// returns a hold. It is right as long as nothing fails. The TODOs have the numbers of the
// chapter's sections. Begin with TODO 1, in join.
//
//	go test ./yours/step5    what your lock can do, and what not yet
//	make hint STEP=5         the next hint
//
// The other files are given:
//
//	session.go   the connection. mustAskAgain tells that a request got no answer, pause is
//	             for a loop that asks again, and connection ends when the connection is lost
//	hold.go      what Lock returns. holdIn finds a hold in a context, and enter counts one
//	             more Lock inside it
//	errors.go    the errors, and what they say
package reentrant

import (
	"context"
	"errors"
	"fmt"
	"math"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// forever is how long Lock waits.
const forever time.Duration = math.MaxInt64

// Lock is one lock, seen by one process. It is safe for use by many goroutines: each of
// them queues up with a znode of its own, unless its context is a hold's. It must not be copied.
type Lock struct {
	noCopy noCopy
	s      *Session
	dir    string
}

// place is our znode in the queue.
type place struct {
	node    string
	session int64 // the znode goes when this session ends
}

// New returns the lock whose directory is path, an absolute path below the root such as
// /locks/orders. It sends nothing: Lock reports a bad argument. The directory's children
// whose names end in lock-<ten digits> are the queue; others are ignored.
func New(s *Session, path string) *Lock {
	return &Lock{s: s, dir: path}
}

// Lock blocks until this call's znode is the first in the queue, and returns the hold. The
// directory and its parents are created where they are missing.
//
// Lock, called with the context of a hold or with one made from it, is re-entry: it returns
// the same hold at once, and one more Unlock is due. Only the same Lock knows the hold:
// another one for the same path queues up.
//
// When ctx ends first, Lock returns its error at once; the znode is deleted later. A broken
// connection or the end of the session does not end the wait. What the server refuses, such
// as zk.ErrNoAuth, does.
func (l *Lock) Lock(ctx context.Context) (*Hold, error) {
	return l.TryLock(ctx, forever)
}

// TryLock is Lock that returns ErrLocked when it does not get the lock within wait. With 0
// it waits for the servers' answers, and for nobody in the queue.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (*Hold, error) {
	if err := check(ctx, l.s, l.dir); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, failed("lock", l.dir, whyEnded(ctx))
	}
	// TODO 3: does ctx carry a hold of this lock? Then its holder is calling.
	// 待办 3：ctx 是不是带着这把锁的 hold？是的话，调用者就是持有者。
	mayWait := wait > 0
	waiting := ctx // wait limits this one alone: the hold's context is made from ctx, without that limit
	if mayWait {
		limited, stop := context.WithTimeoutCause(ctx, wait, ErrLocked)
		defer stop()
		waiting = limited
	}
	h, err := l.queueUp(waiting, mayWait)
	if err != nil {
		return nil, failed("lock", l.dir, err)
	}
	h.begin(ctx)
	return h, nil
}

// queueUp returns the hold when our znode is the first in the queue. It returns as soon as
// waiting ends: what is on its way then goes on in the background, and the znode is deleted.
func (l *Lock) queueUp(waiting context.Context, mayWait bool) (*Hold, error) {
	type result struct {
		h   *Hold
		err error
	}
	// No buffer: either the caller takes the result, or the goroutine sees that waiting has ended,
	// and deletes the znode.
	results := make(chan result)
	go func() {
		h, err := l.joinAndWait(waiting, mayWait)
		select {
		case results <- result{h, err}:
		case <-waiting.Done():
			if err == nil {
				_ = l.leave(h.place) // nobody will use it, and nobody is there to be told
			}
		}
	}()
	select {
	case r := <-results:
		return r.h, r.err
	case <-waiting.Done():
		return nil, whyEnded(waiting)
	}
}

// joinAndWait creates our znode, and waits until it is the first. If the znode is gone
// meanwhile, it queues up again. If anything else fails, it leaves the queue.
func (l *Lock) joinAndWait(waiting context.Context, mayWait bool) (*Hold, error) {
	for {
		mine, err := l.join(waiting)
		if err != nil {
			return nil, err
		}
		h, err := l.wait(waiting, mine, mayWait)
		if err == nil {
			return h, nil
		}
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		leaveErr := l.leave(mine)
		if isRefused(leaveErr) { // with ErrLost the znode is gone, and there is nothing to tell
			err = errors.Join(err, fmt.Errorf("leave the queue: delete %s: %w", mine.node, leaveErr))
		}
		return nil, err
	}
}

// join creates our znode.
//
// TODO 1: when the create got no answer (mustAskAgain), nobody knows whether there is a znode.
// Give it a name by which you know it again, _c_<a random number>-lock-<number>, and call
// find.
// 待办 1：create 没有应答时（mustAskAgain），没有人知道有没有 znode。给它一个认得出的名字
// _c_<随机数>-lock-<序号>，再调用 find。
func (l *Lock) join(waiting context.Context) (place, error) {
	session := l.s.conn.SessionID()
	node, err := create(l.s.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return place{}, err
	}
	return place{node, session}, nil
}

// find looks for a znode whose path begins with prefix. It asks until a server has
// answered, even if the caller has given up: the znode would have to be deleted. The place
// has no node if there is none.
func (l *Lock) find(prefix string) (place, error) {
	for {
		mine, err := l.look(prefix)
		if !l.s.mustAskAgain(err) {
			return mine, err
		}
		pause()
	}
}

// look is one try of find.
//
// TODO 1: list the directory, and look for a name that begins with prefix. Three questions: has
// the server that you are connected to now heard of what the one before has done (Sync)? Is
// the znode of this session, or does it go with an earlier one (EphemeralOwner)? And what does
// it mean if not even the directory is there?
// 待办 1：列出目录，找以 prefix 开头的名字。三个问题：现在连着的这台服务器，知道前一台做过的事吗（Sync）？
// 这个 znode 属于当前会话，还是会随以前的会话消失（EphemeralOwner）？连目录都还没有，又说明什么？
func (l *Lock) look(prefix string) (place, error) {
	return place{}, nil
}

// wait returns when our znode is the first in the queue. After a wake-up it looks
// again: the predecessor may have been a waiter that died. With zk.ErrNoNode our znode is
// gone.
//
// TODO 1: a list or a GetW that got no answer is no reason to give up the place.
// 待办 1：列目录或 GetW 没有应答，不是放弃位置的理由。
// TODO 4: no connection, no hold. Take connection before the list: what if the list says that
// you are the first, and the connection has ended when it has come? And if the session is
// another one now, where is your znode?
// 待办 4：连接一断，锁就算丢了。connection 要在取列表之前拿到。列表显示轮到自己、连接却已断了，怎么办？
// 如果会话已经换了，你的 znode 在哪里？
// TODO 5: that list brings a number with it that only ever grows.
// 待办 5：这份列表还带来一个只增不减的数。
func (l *Lock) wait(waiting context.Context, mine place, mayWait bool) (*Hold, error) {
	for waiting.Err() == nil {
		names, _, err := l.s.conn.Children(l.dir)
		if err != nil {
			return nil, err
		}
		before, err := predecessor(names, pathpkg.Base(mine.node))
		if err != nil {
			return nil, err
		}
		if before == "" {
			return &Hold{lock: l, place: mine, connection: context.Background(), token: 0}, nil
		}
		if !mayWait {
			return nil, ErrLocked
		}
		// GetW, not ExistsW: on a znode that has gone meanwhile it sets no watch.
		_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		select {
		case event := <-gone:
			if event.Err != nil { // the session has ended, and the watch with it
				return nil, event.Err
			}
		case <-waiting.Done():
		}
	}
	return nil, whyEnded(waiting)
}

// leave deletes our znode. ErrLost means that it was gone before.
//
// TODO 2: when the delete got no answer, nobody knows whether the znode is still there. Go on
// until you know that it is gone. It also goes with its session: that is ErrLost, too.
// 待办 2：delete 没有应答时，没有人知道 znode 还在不在。一直做到确定它没了。会话结束，它也就没了：那也是 ErrLost。
func (l *Lock) leave(mine place) error {
	err := l.s.conn.Delete(mine.node, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return ErrLost
	}
	return err
}

// isRefused tells that leave has failed because the server refuses the delete.
func isRefused(leaveErr error) bool { return leaveErr != nil && !errors.Is(leaveErr, ErrLost) }

// Unlock is due once for each Lock. The last one deletes the znode, and goes on until it
// knows that the znode is gone. When ctx ends first, Unlock returns ctx's error at once, and
// the delete goes on in the background. If the server refuses it then, nobody hears of it.
//
// ctx may be the hold's context, or made from it. The release ends that context, too. From then on
// Unlock waits under the context that Lock was given, and keeps ctx's deadline. If ctx had ended
// already, for example because the hold was lost, Unlock does not wait.
//
// Unlock returns ErrNotHeld when it is called too often, and ErrLost when the hold was lost
// or the znode gone. After an error by which the server refuses the delete, such as
// zk.ErrNoAuth, Unlock can be called again.
func (h *Hold) Unlock(ctx context.Context) error {
	if h == nil || h.lock == nil {
		return fmt.Errorf("zklock: unlock: %w", ErrNotHeld)
	}
	if ctx == nil {
		return errNoContext
	}
	isLast, err := h.exit() // err is ErrLost if the hold was lost before
	if !isLast {
		return failed("unlock", h.lock.dir, err)
	}
	h.end(errReleased) // before anybody else can get in
	if context.Cause(ctx) == errReleased {
		// ctx was made from the hold's, and the line above has just ended it. So Unlock waits
		// under what was given to Lock, with ctx's deadline if it has one.
		deadline, has := ctx.Deadline()
		ctx = h.given
		if has {
			limited, stop := context.WithDeadline(ctx, deadline)
			defer stop()
			ctx = limited
		}
	}
	result := make(chan error, 1)
	go func() {
		leaveErr := h.lock.leave(h.place)
		if isRefused(leaveErr) {
			h.exitAgain()
		}
		result <- leaveErr
	}()
	select {
	case leaveErr := <-result: // if there is none, err is still ErrLost when the hold was lost before
		if leaveErr != nil {
			err = leaveErr
		}
		return failed("unlock", h.node, err)
	case <-ctx.Done():
		goesOn := fmt.Errorf("the delete goes on in the background: %w", whyEnded(ctx))
		return failed("unlock", h.node, errors.Join(err, goesOn))
	}
}

// create makes a znode and returns its path, with the number that the server
// gave it. Parents are made only when the server says that they are missing:
// asking for them each time would be a write each time.
func create(conn *zk.Conn, path string, mode int32) (string, error) {
	made, err := conn.Create(path, nil, mode, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNoNode) {
		return made, err
	}
	_, err = create(conn, pathpkg.Dir(path), zk.FlagPersistent)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", err
	}
	return create(conn, path, mode)
}

// predecessor names the znode right before mine in the queue, "" when mine is
// the first. It is an error when mine is not there at all: then nothing holds
// our place.
func predecessor(names []string, mine string) (string, error) {
	if !slices.Contains(names, mine) {
		return "", fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
	}
	own, _ := number(mine)
	before, highest := "", 0
	for _, name := range names {
		if n, ok := number(name); ok && n < own && (before == "" || n > highest) {
			before, highest = name, n
		}
	}
	return before, nil
}

// fewestDigits is how many digits the server gives a number, or more.
const fewestDigits = 10

// number reads a queue znode's number, behind the last "lock-" of its name. Numbers are
// compared, never names. ok is false for a child that is not of the queue, such as the
// directory of another lock that is called block-0.
func number(name string) (n int, ok bool) {
	at := strings.LastIndex(name, "lock-")
	if at < 0 {
		return 0, false
	}
	digits := name[at+len("lock-"):]
	n, err := strconv.Atoi(digits)
	return n, err == nil && len(digits) >= fewestDigits
}
