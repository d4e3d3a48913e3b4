package exercise

import "zklock/internal/property"

var variants2 = []Variant{
	right("a channel as mutex", `
-mu   sync.Mutex
-node string // the znode that holds the lock; "" while this client does not
+held chan string // the znode that holds the lock
…
-return &Lock{conn: conn, dir: path, poll: pollInterval}
+return &Lock{conn: conn, dir: path, poll: pollInterval, held: make(chan string, 1)}
…
-l.mu.Lock()
-defer l.mu.Unlock()
-l.node = node
+select {
+case <-l.held: // of a hold that was lost
+default:
+}
+l.held <- node
…
-l.mu.Lock()
-defer l.mu.Unlock()
-if l.node == "" {
+select {
+case node := <-l.held:
+	err := l.conn.Delete(node, -1)
+	if err != nil && !errors.Is(err, zk.ErrNoNode) {
+		l.held <- node
+	}
+	return failed("unlock", node, err)
+default:
 	return failed("unlock", l.dir, ErrNotHeld)
 }
-node := l.node
-err := l.conn.Delete(node, -1)
-if err == nil || errors.Is(err, zk.ErrNoNode) {
-	l.node = ""
-}
-return failed("unlock", node, err)
`),
	right("pauses for longer and longer, at random", `
+pause := l.poll
 for {
…
-case <-time.After(l.poll):
+case <-time.After(pause):
+	pause = min(pause+rand.N(pause), 300*time.Millisecond)
`),
	// Between two pauses it asks for its own znode, and lists.
	right("sends two requests between two pauses", `
+tick := time.NewTicker(l.poll)
+defer tick.Stop()
 for {
+	isThere, _, err := l.conn.Exists(node)
+	if err != nil {
+		return err
+	}
+	if !isThere {
+		return zk.ErrNoNode
+	}
…
-case <-time.After(l.poll):
+case <-tick.C:
`),
	right("pauses for half a second", `
-const pollInterval = 20 * time.Millisecond
+const pollInterval = 500 * time.Millisecond
`),
	right("pauses for longer", `
-const pollInterval = 20 * time.Millisecond
+const pollInterval = 100 * time.Millisecond
`),
	right("sorts texts, and has a ticker", `
+tick := time.NewTicker(200 * time.Millisecond)
+defer tick.Stop()
 for {
…
-case <-time.After(l.poll):
+case <-tick.C:
…
-own, _ := number(mine)
-for _, name := range names {
-	if n, ok := number(name); ok && n < own {
-		return false, nil
-	}
-}
-return true, nil
+queue := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
+	digits, isOurs := strings.CutPrefix(name, "lock-")
+	return !isOurs || len(digits) != 10 || strings.Trim(digits, "0123456789") != ""
+})
+return slices.Min(queue) == mine, nil
`),
	right("sorts the queue", `
-own, _ := number(mine)
-for _, name := range names {
-	if n, ok := number(name); ok && n < own {
-		return false, nil
-	}
-}
-return true, nil
+queue := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
+	_, isPlace := number(name)
+	return !isPlace
+})
+first := slices.MinFunc(queue, func(a, b string) int {
+	n, _ := number(a)
+	m, _ := number(b)
+	return n - m
+})
+return first == mine, nil
`),
	// No reply or result of a lock shows how much of the stack it uses.
	right("W7", `
 case <-time.After(l.poll):
+	return l.wait(ctx, node)
`),
	// mostly at once; on a slow machine it polls less often, and is refused in a long hold
	wrong("polls without a pause", somewhere, `
-const pollInterval = 20 * time.Millisecond
+const pollInterval = 0
`),
	wrong("sends two requests all the time", somewhere, `
-const pollInterval = 20 * time.Millisecond
+const pollInterval = 0
…
 for {
+	if _, _, err := l.conn.Exists(node); err != nil {
+		return err
+	}
`),
	// "A sequential znode is all that a queue needs."
	wrong("W1", property.CrashFrees, `
-node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
+node, err := create(l.conn, l.dir+"/lock-", zk.FlagSequence)
`),
	wrong("W2", property.OneHolder, `
-for _, name := range names {
-	if n, ok := number(name); ok && n < own {
+for range names {
+	if n, ok := number(mine); ok && n < own {
`),
	wrong("W3", property.OneHolder, `
+greatest, predecessor := 0, ""
 for _, name := range names {
-	if n, ok := number(name); ok && n < own {
-		return false, nil
+	if n, ok := number(name); ok && n < own && n > greatest {
+		greatest, predecessor = n, name
 	}
 }
-return true, nil
+return predecessor == "", nil
`),
	wrong("W4", property.OneHolder, `
-if err := l.wait(ctx, node); err != nil {
-	return failed("lock", l.dir, errors.Join(err, l.leave(node)))
-}
+_ = l.wait(ctx, node) // the published listings print it
`),
	wrong("W5", property.Unrelated, `
+name string // of the lock, before the number of a znode
 poll time.Duration
…
-return &Lock{conn: conn, dir: path, poll: pollInterval}
+return &Lock{conn: conn, dir: pathpkg.Dir(path), name: pathpkg.Base(path) + "_", poll: pollInterval}
…
-node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
+node, err := create(l.conn, l.dir+"/"+l.name, zk.FlagEphemeralSequential)
…
-digits, ok := strings.CutPrefix(name, "lock-")
-n, err := strconv.Atoi(digits)
+at := strings.LastIndex(name, "_")
+ok = at >= 0
+n, err := strconv.Atoi(name[at+1:])
`),
	wrong("W6", atOnce, `
-return &Lock{conn: conn, dir: path, poll: pollInterval}
+node, _ := create(conn, path+"/lock-", zk.FlagEphemeralSequential)
+return &Lock{conn: conn, dir: path, poll: pollInterval, node: node}
…
-node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
-if err != nil {
-	return failed("lock", l.dir, err)
-}
-if err := l.wait(ctx, node); err != nil {
-	return failed("lock", l.dir, errors.Join(err, l.leave(node)))
-}
-l.mu.Lock()
-defer l.mu.Unlock()
-l.node = node
-return nil
+return l.wait(ctx, l.node)
…
-l.mu.Lock()
-defer l.mu.Unlock()
-if l.node == "" {
-	return failed("unlock", l.dir, ErrNotHeld)
-}
-node := l.node
-err := l.conn.Delete(node, -1)
-if err == nil || errors.Is(err, zk.ErrNoNode) {
-	l.node = ""
-}
-return failed("unlock", node, err)
+return l.conn.Delete(l.node, -1)
…
-if !slices.Contains(names, mine) {
-	return false, fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
-}
`),
	wrong("W16", property.OneHolder, `
-node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
+node, err := create(l.conn, l.dir+fmt.Sprintf("/3f9a6c10-7be2-%04x-9c3b-5d0f8a1e44c7-lock-", 0xffff-newcomers.Add(1)), zk.FlagEphemeralSequential)
…
-	own, _ := number(mine)
-	for _, name := range names {
-		if n, ok := number(name); ok && n < own {
-			return false, nil
-		}
-	}
-	return true, nil
+	field := func(name string) string { return append(strings.Split(name, "-"), "", "", "")[2] }
+	return !slices.ContainsFunc(names, func(name string) bool { return field(name) < field(mine) }), nil
 }

-// number returns the number in a znode's name. The queue compares numbers, never
-// names. For a child that is not part of the queue, ok is false.
-func number(name string) (n int, ok bool) {
-	digits, ok := strings.CutPrefix(name, "lock-")
-	n, err := strconv.Atoi(digits)
-	return n, ok && err == nil
-}
+// newcomers make the guids sort before those of all earlier clients. In practice this is a matter of luck.
+var newcomers atomic.Int64
`),
	wrong("W17", property.OneHolder, `
-node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
+node, err := create(l.conn, l.dir+fmt.Sprintf("/host%04x-lock-", 0xffff-newcomers.Add(1)), zk.FlagEphemeralSequential)
…
-	own, _ := number(mine)
-	for _, name := range names {
-		if n, ok := number(name); ok && n < own {
-			return false, nil
-		}
-	}
-	return true, nil
+	return !slices.ContainsFunc(names, func(name string) bool { return name < mine }), nil
 }

-// number returns the number in a znode's name. The queue compares numbers, never
-// names. For a child that is not part of the queue, ok is false.
-func number(name string) (n int, ok bool) {
-	digits, ok := strings.CutPrefix(name, "lock-")
-	n, err := strconv.Atoi(digits)
-	return n, ok && err == nil
-}
+// newcomers make the hosts sort before those of all earlier clients. In practice this is a matter of luck.
+var newcomers atomic.Int64
`),
	// "My create may have been carried out, and nobody would delete that znode."
	wrong("deletes all znodes of its session", property.FailsClean, deletesAllOfItsSession("true")),
	// "If the parent exists already, that is no error."
	wrong("ignores any error of its parent", property.ParentsMade, `
-if err != nil && !errors.Is(err, zk.ErrNodeExists) {
-	return "", err
-}
+if err != nil {
+	time.Sleep(time.Millisecond)
+}
 return create(conn, path, mode)
`),
	// "Nobody is before me."
	alone("does not miss its own znode", property.NotBeside, `
+session := l.conn.SessionID()
 for {
…
+if l.conn.SessionID() != session {
+	return zk.ErrSessionExpired
+}
 if first, err := isFirst(names, pathpkg.Base(node)); first || err != nil {
…
-if !slices.Contains(names, mine) {
-	return false, fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
-}
`),
	// "My znode of the old session was deleted with the session, and Unlock wants no more."
	alone("is glad if its session has gone", property.OnlyHolder, `
-mu   sync.Mutex
-node string // the znode that holds the lock; "" while this client does not
+mu      sync.Mutex
+session int64
+node    string // the znode that holds the lock; "" while this client does not
…
 l.node = node
+l.session = l.conn.SessionID()
…
+if l.session != l.conn.SessionID() {
+	return nil
+}
 return failed("unlock", node, err)
`),
	// "First of all, the directory must exist."
	alone("makes the directory each time", property.MadeOnce, `
+if _, err := create(l.conn, l.dir, zk.FlagPersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
+	return failed("lock", l.dir, err)
+}
 node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
`),
	of(Step1, alone("one znode, and Unlock looks whose it is", property.FirstCome, `
 poll time.Duration // the pause between two tries
+session atomic.Int64 // that got the lock
…
 err := create(l.conn, l.path, l.mode)
 if err == nil {
+	l.session.Store(l.conn.SessionID())
…
+_, stat, err := l.conn.Get(l.path)
+if err == nil && stat.EphemeralOwner != l.session.Load() {
+	err = zk.ErrNoNode
+}
+if err != nil {
+	return failed("unlock", l.path, err)
+}
 return failed("unlock", l.path, l.conn.Delete(l.path, -1))
`)),
	// "I hold the lock, so the first in the queue is mine."
	alone("after a lost reply it deletes the first", property.UnlockRepeated, deletesTheFirst),
	// "It was sent: only the reply has been lost."
	alone("takes a delete without an answer for done", property.UnlockRepeated, `
 node := l.node
 err := l.conn.Delete(node, -1)
+if errors.Is(err, zk.ErrConnectionClosed) {
+	err = nil
+}
`),
	// "The connection will be back soon."
	alone("creates again after a lost connection", property.FailsClean, `
 node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
+for errors.Is(err, zk.ErrConnectionClosed) && ctx.Err() == nil {
+	time.Sleep(l.poll)
+	node, err = create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
+}
`),
	// "A mutex is not held during a request."
	wrong("gives its mutex back before the delete", property.ManyShare, givesItsMutexBack),
	// "If I cannot reach the server, I cannot delete my znode either."
	alone("stays in the queue after an error", property.FailsClean, `
-if err := l.wait(ctx, node); err != nil {
+err = l.wait(ctx, node)
+if err != nil && ctx.Err() != nil {
 	return failed("lock", l.dir, errors.Join(err, l.leave(node)))
+}
+if err != nil {
+	return failed("lock", l.dir, err)
`),
	// to those behind it is the same whether a waiter crashes, gives up, or loses its znode
	// "The znode before ours is deleted, so it is our turn."
	alone("waits for the one before", property.WaiterCrash, `
+before := "" // the znode before ours at the first look
 for {
…
+if before == "" {
+	own, _ := number(pathpkg.Base(node))
+	highest := -1
+	for _, name := range names {
+		if n, ok := number(name); ok && n < own && n > highest {
+			before, highest = name, n
+		}
+	}
+}
+if !slices.Contains(names, before) {
+	return nil
+}
 select {
`, property.GivingUp, property.NotBeside, property.ManyShare),
	// "The number stands at the end of the name."
	wrong("compares the last four digits", property.Unrelated, `
-n, err := strconv.Atoi(digits)
+n, err := strconv.Atoi(digits[max(0, len(digits)-4):])
`),
	// "I have a new znode." But it is not the one that it deletes. After the end of its session it queues again only
	// if no poll is on its way in between.
	wrong("queues again, and keeps its old path", somewhere, queuesAgain("node")),
	// "Its name begins as mine does, and the number is at the end." So does the name of another lock's directory.
	wrong("looks at the beginning and at the end of a name", property.Unrelated, beginningAndEnd),
	wrong("locks with a context that has ended", property.GivingUp, `
-if err := ctx.Err(); err != nil {
-	return failed("lock", l.dir, err)
-}
`),
}

// queuesAgain is a Lock, in steps 2 to 4, that queues again if somebody has deleted its znode. mine is the path of its
// present znode, and node that of its first. held is the one of them that holds the lock.
func queuesAgain(held string) string {
	return `
-if err := l.wait(ctx, node); err != nil {
-	return failed("lock", l.dir, errors.Join(err, l.leave(node)))
+mine := node
+for err = l.wait(ctx, mine); errors.Is(err, zk.ErrNoNode); err = l.wait(ctx, mine) {
+	mine, err = create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
+	if err != nil {
+		return failed("lock", l.dir, err)
+	}
+}
+if err != nil {
+	return failed("lock", l.dir, errors.Join(err, l.leave(mine)))
 }
 l.mu.Lock()
 defer l.mu.Unlock()
-l.node = node
+l.node = ` + held + `
`
}

// deletesTheFirst is an Unlock, in steps 2 to 4, that deletes a second time.
const deletesTheFirst = `
 node := l.node
 err := l.conn.Delete(node, -1)
+if errors.Is(err, zk.ErrConnectionClosed) {
+	if names, _, listErr := l.conn.Children(l.dir); listErr == nil && len(names) > 0 {
+		err = l.conn.Delete(l.dir+"/"+slices.Min(names), -1)
+	}
+}
`

// beginningAndEnd is how, in steps 2 to 4, a number may be read.
const beginningAndEnd = `
-digits, ok := strings.CutPrefix(name, "lock-")
-n, err := strconv.Atoi(digits)
+ok = strings.HasPrefix(name, "lock-")
+n, err := strconv.Atoi(name[max(0, len(name)-10):])
`

// givesItsMutexBack is an Unlock, in steps 2 to 4, that clears l.node when another goroutine may have the lock.
const givesItsMutexBack = `
 node := l.node
+l.mu.Unlock()
 err := l.conn.Delete(node, -1)
+l.mu.Lock()
`

// deletesAllOfItsSession is a Lock, in steps 2 to 4, that looks for the znode of a create without an answer. Other
// goroutines of the client may have znodes, too. It deletes one if isItsOwn.
func deletesAllOfItsSession(isItsOwn string) string {
	return `
 node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
 if err != nil {
+	if errors.Is(err, zk.ErrConnectionClosed) {
+		l.cleanUp(ctx)
+	}
 	return failed("lock", l.dir, err)
 }
…
+// cleanUp deletes what a create without an answer has made.
+func (l *Lock) cleanUp(ctx context.Context) {
+	names, _, err := l.conn.Children(l.dir)
+	for err != nil && ctx.Err() == nil {
+		names, _, err = l.conn.Children(l.dir)
+	}
+	for _, name := range names {
+		node := l.dir + "/" + name
+		_, stat, err := l.conn.Get(node)
+		if err == nil && stat.EphemeralOwner == l.conn.SessionID() && ` + isItsOwn + ` {
+			_ = l.leave(node)
+		}
+	}
+}
+
 // leave deletes the znode of a waiter that has given up.
`
}
