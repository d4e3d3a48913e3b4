package exercise

import (
	"strings"

	"zklock/internal/property"
)

var variants5 = []Variant{
	right("a longer guid", `
-prefix := fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.Uint64())
+prefix := fmt.Sprintf("%s/_c_%016x%016x-lock-", l.dir, rand.Uint64(), rand.Uint64())
`),
	right("deletes what it finds, and creates again", `
-if err != nil || mine.node != "" {
-	return mine, err
+if err != nil {
+	return place{}, err
+}
+if mine.node != "" {
+	if err := l.leave(mine); isRefused(err) {
+		return place{}, err
+	}
`),
	right("knows its holds by a map", `
+key   int64
 life  context.Context // ends when the hold is lost (ErrLost) or released (ErrNotHeld)
…
 h.life, h.end = context.WithCancelCause(connection)
+l.mu.Lock()
+defer l.mu.Unlock()
+l.keys++
+h.key = l.keys
+l.held[h.key] = h
+context.AfterFunc(h.life, func() {
+	l.mu.Lock()
+	defer l.mu.Unlock()
+	delete(l.held, h.key)
+})
…
 func (h *Hold) Context(parent context.Context) context.Context {
-	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
+	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h.key))
…
-func holdIn(ctx context.Context, l *Lock) *Hold {
-	h, _ := ctx.Value(l).(*Hold)
-	return h
+func holdIn(ctx context.Context, l *Lock) (h *Hold, isInside bool) {
+	key, isInside := ctx.Value(l).(int64)
+	l.mu.Lock()
+	defer l.mu.Unlock()
+	return l.held[key], isInside
…
-_ sync.Mutex // go vet warns of a copied Lock: the copy would not find the holds of the original
+mu   sync.Mutex
+held map[int64]*Hold // by their keys, which contexts carry
+keys int64
…
-return &Lock{s: s, dir: path}
+return &Lock{s: s, dir: path, held: map[int64]*Hold{}}
…
-if h := holdIn(ctx, l); h != nil {
+if h, isInside := holdIn(ctx, l); isInside {
+	if h == nil {
+		return nil, failed("lock", l.dir, ErrLost)
+	}
`),
	right("one call of a process queues at a time", `
-_ sync.Mutex // go vet warns of a copied Lock: the copy would not find the holds of the original
+seat chan struct{} // of all calls of this process, one queues at a time
…
-return &Lock{s: s, dir: path}
+return &Lock{s: s, dir: path, seat: make(chan struct{}, 1)}
…
 func (l *Lock) acquire(ctx context.Context, mayWait bool) (*Hold, error) {
+	select {
+	case l.seat <- struct{}{}:
+	default:
+		if !mayWait {
+			return nil, ErrLocked
+		}
+		select {
+		case l.seat <- struct{}{}:
+		case <-ctx.Done():
+			return nil, context.Cause(ctx)
+		case <-l.s.open.Done():
+			return nil, zk.ErrConnectionClosed
+		}
+	}
+	h, err := l.queue(ctx, mayWait)
+	if err != nil {
+		<-l.seat
+		return nil, err
+	}
+	context.AfterFunc(h.life, func() { <-l.seat })
+	return h, nil
+}
+
+func (l *Lock) queue(ctx context.Context, mayWait bool) (*Hold, error) {
`),
	right("the token is of the own znode's create", `
-return newHold(l, mine, connection, stat.Pzxid), nil
+_, stat, err = l.s.conn.Get(mine.node)
+if l.s.mustRetry(err) {
+	pause()
+	continue
+}
+if err != nil {
+	return nil, err
+}
+return newHold(l, mine, connection, stat.Czxid), nil
`),
	// "Somebody else holds the lock, and the next try will find it free."
	wrong("a try that stays in the queue", property.Tries, `
-func (l *Lock) TryLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, false) }
+func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
+	holds, errs := make(chan *Hold, 1), make(chan error, 1)
+	go func() {
+		h, err := l.Lock(ctx)
+		holds <- h
+		errs <- err
+	}()
+	select {
+	case h := <-holds:
+		return h, <-errs
+	case <-time.After(time.Second):
+		return nil, ErrLocked
+	}
+}
`),
	// "The create was not answered, so it has failed, and I try again."
	wrong("creates again without looking", property.LostCreateReply, `
-mine, err := l.find(prefix)
-if err != nil || mine.node != "" {
-	return mine, err
-}
`),
	// "Unlock must delete the znode. If it is already deleted, all is well."
	wrong("is glad if its znode has gone", property.OnlyHolder, `
-if lost != nil {
-	err = lost
+if lost != nil || errors.Is(err, ErrLost) {
+	return nil
`),
	// "The session is mine until I close it."
	wrong("is not told of a loss", property.ToldOfLoss, `
-return newHold(l, mine, connection, stat.Pzxid), nil
+return newHold(l, mine, l.s.open, stat.Pzxid), nil
`),
	// "The work ends when it is done."
	wrong("its context goes on", property.ToldOfLoss, `
-ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
-forget := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
-context.AfterFunc(ctx, func() { forget() }) // else a long hold keeps each context that has ended
-if h.life.Err() != nil {
-	cancel(context.Cause(h.life)) // AfterFunc cancels in a goroutine of its own, a moment later
-}
-return ctx
+return context.WithValue(parent, h.lock, h)
`),
	// "The create was not answered, and the caller may try again."
	wrong("leaves a lost create to its caller", property.LostCreateReply, `
-mine, err := l.find(prefix)
-if err != nil || mine.node != "" {
-	return mine, err
-}
+return place{}, zk.ErrConnectionClosed
`),
	// "Each turn has a number of its own."
	wrong("the token is counted in the process", property.Fenced, `
 }
-names, stat, err := l.s.conn.Children(l.dir)
+names, _, err := l.s.conn.Children(l.dir)
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+return newHold(l, mine, connection, turns.Add(1)), nil
…
+var turns atomic.Int64
+
 // errNoAnswer is what Unlock returns when it has waited long enough.
`),
	wrong("the token is the time of day", property.Fenced, `
 }
-names, stat, err := l.s.conn.Children(l.dir)
+names, _, err := l.s.conn.Children(l.dir)
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+return newHold(l, mine, connection, time.Now().UnixNano()), nil
`),
	wrong("W10", property.LocksAgain, `
 func (h *Hold) Context(parent context.Context) context.Context {
-	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
+	ctx, cancel := context.WithCancelCause(context.WithValue(parent, anyHold{}, h))
…
+type anyHold struct{} // it does not name the lock
+
 // holdIn returns the lock's hold that ctx carries, or nil. The hold may be over: released or lost.
 func holdIn(ctx context.Context, l *Lock) *Hold {
-	h, _ := ctx.Value(l).(*Hold)
+	h, _ := ctx.Value(anyHold{}).(*Hold)
`),
	wrong("W11", property.LocksAgain, `
-lock  *Lock
-mine  place
-token int64
-life  context.Context // ends when the hold is lost (ErrLost) or released (ErrNotHeld)
-end   context.CancelCauseFunc
+lock      *Lock
+mine      place
+token     int64
+hasWaited bool
+life      context.Context // ends when the hold is lost (ErrLost) or released (ErrNotHeld)
+end       context.CancelCauseFunc
…
 func (h *Hold) Context(parent context.Context) context.Context {
-	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
+	if h.hasWaited {
+		parent = context.WithValue(parent, h.lock, h)
+	}
+	ctx, cancel := context.WithCancelCause(parent)
…
 func (l *Lock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
+	hasWaited := false
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+h := newHold(l, mine, connection, stat.Pzxid)
+h.hasWaited = hasWaited
+return h, nil
…
 }
+hasWaited = true
 select {
`),
	// "The holder's znode is the first, so Unlock deletes the first."
	wrong("W14", property.OnlyHolder, `
+func byNumber(a, b string) int {
+	n, _ := number(a)
+	m, _ := number(b)
+	return n - m
+}
+
 // isRefused reports whether the server has refused the delete.
…
+if names, _, err := h.lock.s.conn.Children(h.lock.dir); err == nil && len(names) > 0 {
+	h.mine.node = h.lock.dir + "/" + slices.MinFunc(names, byNumber)
+}
 err := h.lock.leaveInTime(h.mine)
`),
	// "The delete was sent, and TryLock has an answer to give."
	alone("a try that deletes once", property.TryLost, `
 if err != nil {
-	go l.leave(mine) // until the znode is deleted, or the server refuses
+	if mayWait {
+		go l.leave(mine)
+	} else {
+		_ = l.s.conn.Delete(mine.node, -1)
+	}
`),
	// "The work ends with the context that TryLock was given."
	alone("a try that ends the hold", property.Tries, `
-func (l *Lock) TryLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, false) }
+func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
+	h, err := l.lock(ctx, false)
+	if err == nil {
+		context.AfterFunc(ctx, func() { h.end(ctx.Err()) })
+	}
+	return h, err
+}
`),
	// "The work ends with the context that Lock was given."
	wrong("a Lock that ends the hold", property.ToldOfLoss, `
-	return h, failed("lock", l.dir, err)
+	if err == nil {
+		context.AfterFunc(ctx, func() { h.end(ctx.Err()) })
+	}
+	return h, failed("lock", l.dir, err)
`),
	alone("compares no sessions after its create", property.KeptCreate, `
-sameSession := l.s.conn.SessionID() == session
-if err == nil && sameSession {
+if err == nil {
`),
	// "The lock knows how often it is locked."
	alone("counts in the lock", property.LostApart, `
-mu    sync.Mutex
-count int // calls to Lock without an Unlock yet
…
-h := &Hold{lock: l, mine: mine, token: token, count: 1}
+h := &Hold{lock: l, mine: mine, token: token}
+l.mu.Lock()
+l.count = 1
+l.mu.Unlock()
…
-h.mu.Lock()
-defer h.mu.Unlock()
+h.lock.mu.Lock()
+defer h.lock.mu.Unlock()
 if h.life.Err() != nil {
…
-h.count++
+h.lock.count++
…
-_ sync.Mutex // go vet warns of a copied Lock: the copy would not find the holds of the original
+mu    sync.Mutex
+count int
…
-h.mu.Lock()
-defer h.mu.Unlock()
-if h.count == 0 {
+h.lock.mu.Lock()
+defer h.lock.mu.Unlock()
+if h.lock.count == 0 {
 	return failed("unlock", h.mine.node, ErrNotHeld)
 }
-if h.count > 1 {
-	h.count--
+if h.lock.count > 1 {
+	h.lock.count--
…
-h.count--
+h.lock.count--
 if lost != nil {
`),
	// "The holder is known by its context."
	alone("enters a hold that is over", property.LocksAgain, `
-if h.life.Err() != nil {
-	return context.Cause(h.life)
-}
…
-if err := check(ctx, l.s, l.dir); err != nil {
-	return nil, err
-}
…
+if err := check(ctx, l.s, l.dir); err != nil {
+	return nil, err
+}
 var h *Hold
`),
	// "A list without an answer ends the wait."
	alone("gives up its place when a list fails", property.LineBreaks, `
 func (l *Lock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
+	if _, _, err := l.s.conn.Children(l.dir); err != nil {
+		return nil, err
+	}
`),
	// "The delete was sent, and the caller does not wait for more."
	alone("gives up with one delete", property.GivesUpCutOff, `
 if err != nil {
-	go l.leave(mine) // until the znode is deleted, or the server refuses
+	if mayWait {
+		go l.s.conn.Delete(mine.node, -1)
+	} else {
+		go l.leave(mine)
+	}
`),
	// "The delete was not answered, and the caller may call Unlock again."
	alone("leaves a lost delete to its caller", property.LostDeleteReply, `
-err := h.lock.leaveInTime(h.mine)
-if isRefused(err) {
+err := h.lock.s.conn.Delete(h.mine.node, -1)
+if h.lock.s.mustRetry(err) || isRefused(err) {
`),
	// "The directory may not exist yet, so the sync may fail."
	alone("lists whatever its sync returned", property.LaggingServer, `
-if _, err := l.s.conn.Sync(l.dir); err != nil {
-	return place{}, err
-}
+_, _ = l.s.conn.Sync(l.dir)
`),
	// "I am connected when I get the lock, so all is well."
	alone("looks at its connection once", property.ToldOfLoss, `
+if connection.Err() == nil {
+	connection = l.s.open
+}
 return newHold(l, mine, connection, stat.Pzxid), nil
`),
	// "The list has failed, so there is nothing to find."
	alone("looks once", property.LostCreateReply, `
-if errors.Is(err, zk.ErrNoNode) {
+if errors.Is(err, zk.ErrNoNode) || l.s.mustRetry(err) {
 	return place{}, nil // not even the directory exists
`),
	// "The guid tells my znodes from those of others, so one for each lock is enough."
	alone("one guid for all calls", property.OwnPlace, `
-s   *Session
-dir string
+s      *Session
+dir    string
+prefix string
…
-return &Lock{s: s, dir: path}
+return &Lock{s: s, dir: path, prefix: fmt.Sprintf("%s/_c_%016x-lock-", path, rand.Uint64())}
…
-prefix := fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.Uint64())
+prefix := l.prefix
`),
	// "The guid is mine alone, so the znode is mine."
	alone("takes any znode with its guid", property.OldZnode, `
-_, stat, err := l.s.conn.Get(node)
-if errors.Is(err, zk.ErrNoNode) {
-	continue // it was deleted after the list
-}
-if err != nil {
-	return place{}, err
-}
-if stat.EphemeralOwner == session {
-	return place{node: node, session: session}, nil
-}
-// Else it belongs to an old session of ours, and will be deleted with it.
+return place{node: node, session: session}, nil
`),
	// "The session is the same before the list, so the list is of this session."
	alone("compares its session before the list", property.KeptList, `
+if l.sessionEnded(mine) {
+	return nil, zk.ErrNoNode
+}
 names, stat, err := l.s.conn.Children(l.dir)
-if l.sessionEnded(mine) {
-	return nil, zk.ErrNoNode // a list of the next session may still show our znode
-}
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+return newHold(l, mine, l.s.connection(), stat.Pzxid), nil
`),
	// "The list has shown my znode, so I may sleep."
	alone("sleeps on any watch", property.KeptWatch, `
-if l.sessionEnded(mine) {
-	return nil, zk.ErrNoNode // a watch of the next session does not end with ours
-}
`),
	// "The session is over, and so is my call."
	alone("returns an error when its session ends before the watch", property.KeptWatch, `
 if l.sessionEnded(mine) {
-	return nil, zk.ErrNoNode // a watch of the next session does not end with ours
+	return nil, zk.ErrSessionExpired
 }
`),
	// "Somebody deleted my znode: the caller has to know."
	wrong("does not queue again", property.LostWhileWaiting, `
-if errors.Is(err, zk.ErrNoNode) {
-	continue // our znode was deleted: queue up again
-}
 if err != nil {
 	go l.leave(mine) // until the znode is deleted, or the server refuses
`),
	// "An Unlock releases the lock."
	alone("the first of two Unlocks ends it", property.LocksAgain, `
-if h.count > 1 {
-	h.count--
-	return failed("unlock", h.mine.node, h.lost())
-}
+h.count = 1
`, property.Tries), // which tries within a hold as well
	// "Each znode has a greater number than the one before."
	alone("the token is the znode's number", property.Fenced, `
 }
-names, stat, err := l.s.conn.Children(l.dir)
+names, _, err := l.s.conn.Children(l.dir)
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+n, _ := number(pathpkg.Base(mine.node))
+return newHold(l, mine, connection, int64(n)), nil
`),
	// "The directory has the number of its last change."
	alone("the token is read after the list", property.Fenced, `
-names, stat, err := l.s.conn.Children(l.dir)
+names, _, err := l.s.conn.Children(l.dir)
…
 if before == "" {
+	_, stat, err := l.s.conn.Get(l.dir)
+	if l.s.mustRetry(err) {
+		pause()
+		continue
+	}
+	if err != nil {
+		return nil, err
+	}
`),
	// "The caller may wait until I know that nothing is left."
	alone("waits for the answer", property.GivesUpAtOnce, `
-select {
-case result <- err:
-case <-ctx.Done(): // Lock has returned, and no caller will unlock
-	if err == nil {
-		_ = h.Unlock()
-	}
-}
+result <- err
…
 case err := <-result:
 	return h, failed("lock", l.dir, err)
-case <-ctx.Done():
-	return nil, failed("lock", l.dir, context.Cause(ctx))
`),
	// "The goroutine looks whether its caller has left, and the buffer lets it end in any case."
	alone("its caller leaves after the last look", property.GivingUp, leavesAfterTheLook("ctx, mayWait")),
	// "Three times is enough: then the server is down."
	wrong("a release stops after three tries", property.LostDeleteReply, `
-mayBeDone := false // an earlier delete got no answer: perhaps it was carried out
+mayBeDone, tries := false, 0
…
 mayBeDone = true
+if tries++; tries == 3 {
+	return nil
+}
 pause()
`),
	// "The context ends with the hold."
	wrong("a context without its parent's end", property.ToldOfLoss, `
-ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
+ctx, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(parent), h.lock, h))
`),
	// "Nobody is in the queue, so the lock is free, and Lock does not wait."
	wrong("a try that looks first, and then waits", property.Tries, lookFirst("Lock", "")),
	// "The context ends with the hold, so a goroutine waits for that."
	wrong("a goroutine for each context", property.QuietAfter, `
-forget := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
-context.AfterFunc(ctx, func() { forget() }) // else a long hold keeps each context that has ended
+go func() {
+	<-h.life.Done()
+	cancel(context.Cause(h.life))
+}()
`),
	right("releases by a multi", `
-err := l.s.conn.Delete(mine.node, -1)
+_, err := l.s.conn.Multi(&zk.DeleteRequest{Path: mine.node, Version: -1})
`),
	// "These are the library's errors for a request without an answer."
	alone("takes the error of a write for an answer", property.LostDeleteReply, `
-var broken net.Error // the connection broke while the request was being sent
-return errors.As(err, &broken)
+return false
`),
	// "I set the watch, look once more, and only then sleep."
	right("looks once more before it sleeps", `
 func (l *Lock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
+	watched := ""
+	var set <-chan zk.Event
…
 // GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
-_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
+if before == watched {
+	select {
+	case <-set:
+	case <-ctx.Done():
+	}
+	watched = ""
+	continue
+}
+_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
…
-select {
-case <-gone: // deleted; or the session has ended, or is closed: list again
-case <-ctx.Done():
-}
+watched, set = before, gone
`),
	wrong("retries a refused list", property.FailsClean, `
 	return nil, zk.ErrNoNode // a list of the next session may still show our znode
 }
-if l.s.mustRetry(err) {
+if err != nil && !l.s.isClosed() {
`),
	wrong("gives its search up with its context", property.GivesUpCutOff, `
-mine, err := l.find(prefix)
+mine, err := l.find(ctx, prefix)
…
-func (l *Lock) find(prefix string) (place, error) {
+func (l *Lock) find(ctx context.Context, prefix string) (place, error) {
…
-mine, err := l.look(prefix)
-if !l.s.mustRetry(err) {
+mine, err := l.look(prefix)
+if !l.s.mustRetry(err) || ctx.Err() != nil {
`),
	wrong("waits without a limit in Unlock", property.LostDeleteReply, `
-case <-time.After(l.s.timeout):
+case <-time.After(l.s.timeout * 1000):
`),
	wrong("knows only its own form of names", property.Unrelated, `
-var queueName = regexp.MustCompile(`+"`^_c_.*-lock-([0-9]{10})$`"+`)
+var queueName = regexp.MustCompile("^_c_[0-9a-f]{16}-lock-([0-9]{10})$")
`),
	wrong("enters a hold that is over if the context lives", property.LocksAgain, `
-if h.life.Err() != nil {
-	return context.Cause(h.life)
-}
-h.count++
+h.count++
`),
	wrong("the Unlock of an inner Lock knows of no loss", property.LocksAgain, `
-return failed("unlock", h.mine.node, h.lost())
+return nil
`),
	// "A hold that is lost needs no count."
	wrong("the Unlock of an inner Lock does not count after a loss", property.LocksAgain, `
-	h.count--
-	return failed("unlock", h.mine.node, h.lost())
+	lost := h.lost()
+	if lost == nil {
+		h.count--
+	}
+	return failed("unlock", h.mine.node, lost)
`),
	// "A hold is for a path."
	wrong("the key of its hold is the path", property.LocksAgain, `
 func (h *Hold) Context(parent context.Context) context.Context {
-	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
+	ctx, cancel := context.WithCancelCause(context.WithValue(parent, holdKey(h.lock.dir), h))
…
+type holdKey string
+
 // holdIn returns the lock's hold that ctx carries, or nil. The hold may be over: released or lost.
 func holdIn(ctx context.Context, l *Lock) *Hold {
-	h, _ := ctx.Value(l).(*Hold)
+	h, _ := ctx.Value(holdKey(l.dir)).(*Hold)
`),
	// A second New for the same path makes the same lock.
	right("the key of its hold is the session and the path", `
 func (h *Hold) Context(parent context.Context) context.Context {
-	ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
+	ctx, cancel := context.WithCancelCause(context.WithValue(parent, holdKey{h.lock.s, h.lock.dir}, h))
…
+type holdKey struct {
+	s   *Session
+	dir string
+}
+
 // holdIn returns the lock's hold that ctx carries, or nil. The hold may be over: released or lost.
 func holdIn(ctx context.Context, l *Lock) *Hold {
-	h, _ := ctx.Value(l).(*Hold)
+	h, _ := ctx.Value(holdKey{l.s, l.dir}).(*Hold)
`),
	// "A mutex is not held during a request: that may take as long as the session timeout."
	wrong("two Unlocks at once", property.LocksAgain, `
 lost := h.lost()
-h.end(ErrNotHeld) // before another client can get the lock, and even if the server refuses the delete
+h.mu.Unlock()
+defer h.mu.Lock()
+h.end(ErrNotHeld) // before another client can get the lock, and even if the server refuses the delete
`),
	// "A hold that was released is no hold."
	wrong("enters a hold that it has lost", property.LocksAgain, `
-if h.life.Err() != nil {
-	return context.Cause(h.life)
-}
+if errors.Is(context.Cause(h.life), ErrNotHeld) {
+	return ErrNotHeld
+}
 h.count++
`),
	// "The error of the delete is not lost: it waits in a channel."
	wrong("a try that reports to nobody", property.QuietAfter, `
 if err != nil {
-	go l.leave(mine) // until the znode is deleted, or the server refuses
+	deleted := make(chan error)
+	if mayWait {
+		deleted = make(chan error, 1)
+	}
+	go func() { deleted <- l.leave(mine) }()
`),
	// "Each hold has a goroutine, which Unlock ends."
	wrong("leaves the goroutine of a lost hold", property.QuietAfter, `
-count int // calls to Lock without an Unlock yet
+count int // calls to Lock without an Unlock yet
+done  chan struct{}
…
-h := &Hold{lock: l, mine: mine, token: token, count: 1}
+h := &Hold{lock: l, mine: mine, token: token, count: 1, done: make(chan struct{})}
+go func() { <-h.done }()
…
-h.count--
-if lost != nil {
-	err = lost
-}
+h.count--
+if lost != nil {
+	return failed("unlock", h.mine.node, lost)
+}
+close(h.done)
`),
	// "A name ends in lock- and its number."
	wrong("takes any name with its ending for a place", property.Unrelated, `
-var queueName = regexp.MustCompile(`+"`^_c_.*-lock-([0-9]{10})$`"+`)
+var queueName = regexp.MustCompile("-lock-([0-9]{10})$")
`),
	// "My place is the one that I queued up with."
	wrong("its hold has the place that it had first", property.LostWhileWaiting, keepsItsFirstPlace("Lock", "ctx context.Context, mayWait bool", `
 	return nil, err
 }
+h.mine = first
 return h, nil
`)),
	wrong("gives up the place that it had first", property.LostWhileWaiting, keepsItsFirstPlace("Lock", "ctx context.Context, mayWait bool", `
-go l.leave(mine) // until the znode is deleted, or the server refuses
+go l.leave(first)
`)),
	// "Its name begins as mine does, and the number is at the end." So does the name of another lock's directory.
	wrong("looks at the beginning and at the end of a name", property.Unrelated, `
-var queueName = regexp.MustCompile(`+"`^_c_.*-lock-([0-9]{10})$`"+`)
+var queueName = regexp.MustCompile("^_c_.*-lock-.*([0-9]{10})$")
`),
	// "What the server puts behind the name is a number."
	wrong("takes any number for a place", property.Unrelated, `
-var queueName = regexp.MustCompile(`+"`^_c_.*-lock-([0-9]{10})$`"+`)
+var queueName = regexp.MustCompile("^_c_.*-lock-([0-9]+)$")
`),
	right("reads names without a regexp", `
-var queueName = regexp.MustCompile(`+"`^_c_.*-lock-([0-9]{10})$`"+`)
…
-parts := queueName.FindStringSubmatch(name)
-if parts == nil {
-	return 0, false
-}
-n, err := strconv.Atoi(parts[1])
-return n, err == nil
+rest, isOurs := strings.CutPrefix(name, "_c_")
+at := strings.LastIndex(rest, "-lock-")
+if !isOurs || at < 0 {
+	return 0, false
+}
+digits := rest[at+len("-lock-"):]
+read, err := strconv.ParseUint(digits, 10, 31)
+return int(read), err == nil && len(digits) == 10
`),
	// "An atomic needs no mutex."
	alone("counts in an atomic", property.LocksAgain, `
-count int // calls to Lock without an Unlock yet
+count atomic.Int64
…
-h := &Hold{lock: l, mine: mine, token: token, count: 1}
+h := &Hold{lock: l, mine: mine, token: token}
+h.count.Store(1)
…
 func (h *Hold) enter() error {
-	h.mu.Lock()
-	defer h.mu.Unlock()
-	if h.life.Err() != nil {
-		return context.Cause(h.life)
-	}
-	h.count++
-	return nil
+	for n := h.count.Load(); n > 0 && h.lost() == nil; n = h.count.Load() {
+		if h.count.CompareAndSwap(n, n+1) {
+			return nil
+		}
+	}
+	return ErrNotHeld
…
-h.mu.Lock()
-defer h.mu.Unlock()
-if h.count == 0 {
+count := h.count.Load()
+if count == 0 {
 	return failed("unlock", h.mine.node, ErrNotHeld)
 }
-if h.count > 1 {
-	h.count--
+if count > 1 {
+	h.count.Add(-1)
…
-h.count--
+h.count.Add(-1)
 if lost != nil {
`),
	// "The connection comes first of all."
	wrong("a hold of the connection before its create", property.LostCreateReply, `
 for {
+	connection := l.s.connection()
+	if connection.Err() != nil && ctx.Err() == nil && !l.s.isClosed() {
+		pause()
+		continue
+	}
 	mine, err := l.join(ctx)
…
-h, err := l.wait(ctx, mine, mayWait)
+h, err := l.wait(ctx, mine, connection, mayWait)
…
-func (l *Lock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
+func (l *Lock) wait(ctx context.Context, mine place, connection context.Context, mayWait bool) (*Hold, error) {
…
-connection := l.s.connection() // ends when the present connection does
-if connection.Err() != nil && !l.s.isClosed() {
-	pause() // until there is another one
-	continue
-}
`),
	// "What is lost need not be released." But a connection that breaks does not end the session, and the znode stays.
	wrong("a lost hold keeps its znode", property.QuietAfter, `
 lost := h.lost()
+if lost != nil {
+	h.count--
+	return failed("unlock", h.mine.node, lost)
+}
`),
	// "I waited for that znode, so the token comes from it." It is the token of the one before.
	wrong("a waiter's token is that of the znode before it", property.Fenced, waitersTokenIsOfTheZnodeBefore),
	// "Who has the same number is hardly ever in the queue."
	wrong("a guid of one byte", somewhere, `
-prefix := fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.Uint64())
+prefix := fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.IntN(256))
`),
}

// keepsItsFirstPlace is a Lock, in steps 5 and 6, that queues again, and uses its first place in some line. args are what
// acquire takes.
func keepsItsFirstPlace(lock, args, line string) string {
	return `
 func (l *` + lock + `) acquire(` + args + `) (*Hold, error) {
+	var first place
…
+if first.node == "" {
+	first = mine
+}
 h, err := l.wait(ctx, mine, mayWait)
…
` + strings.Trim(line, "\n")
}
