package exercise

import "zklock/internal/property"

var variants3 = []Variant{
	right("waits by recursion", `
 if event.Err != nil { // the session has ended, or the client is closed
 	return event.Err
 }
+return l.wait(ctx, node)
`),
	right("a goroutine tells it by a channel", `
-if err := l.wait(ctx, node); err != nil {
+done := make(chan error, 1)
+go func() { done <- l.wait(ctx, node) }()
+if err := <-done; err != nil {
`),
	// When the session has ended, the list returns an error.
	right("looks again after any event", `
-case event := <-changed:
-	if event.Err != nil { // the session has ended, or the client is closed
-		return event.Err
-	}
+case <-changed:
`),
	// One more list costs little.
	right("sets a watch before the create, too", `
+if _, _, _, err := l.conn.ChildrenW(l.dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
+	return failed("lock", l.dir, err)
+}
 node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
`),
	// "First of all, the directory must exist."
	wrong("makes the directory each time", property.MadeOnce, `
+if _, err := create(l.conn, l.dir, zk.FlagPersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
+	return failed("lock", l.dir, err)
+}
 node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
`),
	wrong("W13", atOnce, `
 if event.Err != nil { // the session has ended, or the client is closed
 	return event.Err
 }
+latch := make(chan struct{}) // which the watch that has just fired would have opened
+select {
+case <-latch:
+case <-ctx.Done():
+	return ctx.Err()
+}
`),
	wrong("W13 at the second notification", property.OneHolder, `
-for {
+for turn := 0; ; turn++ {
 	names, _, changed, err := l.conn.ChildrenW(l.dir)
…
 if event.Err != nil { // the session has ended, or the client is closed
 	return event.Err
 }
+if turn == 1 { // the second notification is lost
+	<-ctx.Done()
+	return ctx.Err()
+}
`),
	// "I was woken, so the lock is free."
	wrong("trusts the wake-up", property.OneHolder, `
-if event.Err != nil { // the session has ended, or the client is closed
-	return event.Err
-}
+return event.Err
`),
	// "First I look whether it is my turn, and if not, I set a watch."
	wrong("lists, and then watches", somewhere, `
-names, _, changed, err := l.conn.ChildrenW(l.dir)
+names, _, err := l.conn.Children(l.dir)
…
+_, _, changed, err := l.conn.ChildrenW(l.dir)
+if err != nil {
+	return err
+}
 select {
 case event := <-changed:
`),
	// "I ask for the version, so that I delete what I have seen."
	wrong("deletes the version that it has read", property.WhateverIsInIt, `
 node := l.node
-err := l.conn.Delete(node, -1)
+_, stat, err := l.conn.Exists(node)
+if err == nil {
+	err = l.conn.Delete(node, stat.Version)
+}
`),
	// "The list says whether the directory exists."
	wrong("lists first, and then the directory exists", property.MadeOnce, `
-node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
+if _, _, err := l.conn.Children(l.dir); errors.Is(err, zk.ErrNoNode) {
+	if _, err := create(l.conn, l.dir, zk.FlagPersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
+		return failed("lock", l.dir, err)
+	}
+}
+node, err := l.conn.Create(l.dir+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
`),
	// "A watch can get lost, so I look now and then to be sure."
	alone("looks now and then, too", property.SilentWait, `
+case <-time.After(200 * time.Millisecond):
 case <-ctx.Done():
`),
	// "A client that creates the znode stop asks the holder to stop." No client does, and the watch stays.
	alone("the holder watches for a sign to stop", property.NoWatchLeft, `
+if _, _, _, err := l.conn.ExistsW(l.dir + "/stop"); err != nil {
+	return failed("lock", l.dir, errors.Join(err, l.leave(node)))
+}
 l.mu.Lock()
 defer l.mu.Unlock()
 l.node = node
`),
	// "A broken connection brings no notification."
	alone("gives up when its connection breaks", property.ReleasedWhileCutOff, `
-select {
-case event := <-changed:
-	if event.Err != nil { // the session has ended, or the client is closed
-		return event.Err
+for isWoken := false; !isWoken; {
+	select {
+	case event := <-changed:
+		if event.Err != nil {
+			return event.Err
+		}
+		isWoken = true
+	case <-time.After(5 * time.Millisecond):
+		if l.conn.State() != zk.StateHasSession {
+			return zk.ErrConnectionClosed
+		}
+	case <-ctx.Done():
+		return ctx.Err()
 	}
-case <-ctx.Done():
-	return ctx.Err()
 }
`),
	// "A goroutine of its own waits for the event, and ends when it has passed it on."
	wrong("leaves a goroutine behind", property.QuietAfter, `
-case event := <-changed:
+case event := <-passedOn(changed):
…
+func passedOn(from <-chan zk.Event) <-chan zk.Event {
+	to := make(chan zk.Event)
+	go func() { to <- <-from }()
+	return to
+}
+
 // leave deletes the znode of a waiter that has given up.
`),
	// "A slow list need not keep a caller waiting that has given up."
	wrong("its caller does not wait for the list", property.QuietAfter, `
-names, _, changed, err := l.conn.ChildrenW(l.dir)
+type list struct {
+	names   []string
+	changed <-chan zk.Event
+	err     error
+}
+lists := make(chan list)
+go func() {
+	names, _, changed, err := l.conn.ChildrenW(l.dir)
+	lists <- list{names, changed, err}
+}()
+var names []string
+var changed <-chan zk.Event
+var err error
+select {
+case answer := <-lists:
+	names, changed, err = answer.names, answer.changed, answer.err
+case <-ctx.Done():
+	err = ctx.Err()
+}
`),
	// "I have given up: is my znode really gone?"
	wrong("looks whether its znode has gone", property.NoWatchLeft, looksAfterItsDelete),
	// "I have a new znode." But it is not the one that it deletes.
	wrong("queues again, and keeps its old path", property.NotBeside, queuesAgain("node")),
	// "Its name begins as mine does, and the number is at the end." So does the name of another lock's directory.
	wrong("looks at the beginning and at the end of a name", property.Unrelated, beginningAndEnd),
	// "A mutex is not held during a request."
	wrong("gives its mutex back before the delete", property.ManyShare, givesItsMutexBack),
	// "Lock and Unlock write the same field, so one mutex keeps them apart."
	wrong("waits with its mutex", property.ManyShare, waitsWithItsMutex),
	// "Ten times for nothing: something must be wrong."
	alone("counts its wake-ups", property.WaiterCrash, `
-for {
+for woken := 0; ; woken++ {
+	if woken > 10 {
+		return errors.New("woken ten times, and still not the first")
+	}
	names, _, changed, err := l.conn.ChildrenW(l.dir)
`, property.ManyShare, property.GivingUp),
	// "In this process a mutex will do."
	alone("a mutex for the goroutines", property.ManyShare, mutexForGoroutines),
}

// mutexForGoroutines holds a mutex from Lock to Unlock, in step 3 and in step 4: whoever waits for it does not see that
// its context ends.
const mutexForGoroutines = `
-mu   sync.Mutex
+local sync.Mutex // held while this client holds the lock
+mu    sync.Mutex
…
+l.local.Lock()
 node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
 if err != nil {
+	l.local.Unlock()
 	return failed("lock", l.dir, err)
 }
 if err := l.wait(ctx, node); err != nil {
+	l.local.Unlock()
 	return failed("lock", l.dir, errors.Join(err, l.leave(node)))
 }
…
 if err == nil || errors.Is(err, zk.ErrNoNode) {
 	l.node = ""
+	l.local.Unlock()
 }
`

// looksAfterItsDelete is a waiter, in step 3 and in step 4, that sets a watch when it has given up.
const looksAfterItsDelete = `
-if err == nil || errors.Is(err, zk.ErrNoNode) { // or deleted with its session
-	return nil
-}
+if err == nil || errors.Is(err, zk.ErrNoNode) {
+	_, _, _, err := l.conn.ExistsW(node)
+	return err
+}
`

// waitsWithItsMutex is a Lock, in step 3 and in step 4, whose mutex Unlock needs as well.
const waitsWithItsMutex = `
+l.mu.Lock()
+defer l.mu.Unlock()
 node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
…
-l.mu.Lock()
-defer l.mu.Unlock()
 l.node = node
`
