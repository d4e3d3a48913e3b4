package exercise

import "zklock/internal/property"

var variants1 = []Variant{
	right("pauses for longer", `
-const pollInterval = 20 * time.Millisecond
+const pollInterval = 300 * time.Millisecond
`),
	// A read is cheaper than a create that fails.
	right("looks before each try", `
-const pollInterval = 20 * time.Millisecond
+const pollInterval = 200 * time.Millisecond
…
-err := create(l.conn, l.path, l.mode)
+there, _, err := l.conn.Exists(l.path)
+if err == nil && there {
+	err = zk.ErrNodeExists
+}
+if err == nil {
+	err = create(l.conn, l.path, l.mode)
+}
 if err == nil {
 	return nil
 }
`),
	// When the session expires, its watch ends, and the client gets another session: it looks again.
	right("watches the znode", `
+there, _, gone, err := l.conn.ExistsW(l.path)
+if err != nil {
+	return failed("lock", l.path, err)
+}
+if !there {
+	continue
+}
 select {
-case <-time.After(l.poll):
-case <-ctx.Done(): // the loop's first statement returns the reason
+case <-gone:
+case <-ctx.Done():
 }
`),
	// "An error may be temporary."
	alone("tries after any error", property.FailsClean, `
-if !errors.Is(err, zk.ErrNodeExists) {
-	return failed("lock", l.path, err)
-}
`, property.ParentsMade), // which must return a refusal as well
	// "The connection will be back soon."
	alone("tries again after a lost connection", property.FailsClean, `
-if !errors.Is(err, zk.ErrNodeExists) {
+if !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrConnectionClosed) {
`),
	wrong("W4", property.OneHolder, `
-if !errors.Is(err, zk.ErrNodeExists) {
-	return failed("lock", l.path, err)
-}
+return nil // the published listings print the error
`),
	// "My create may have been carried out, and nobody would delete that znode."
	wrong("deletes the znode when its create gets no answer", property.OneHolder, `
 if !errors.Is(err, zk.ErrNodeExists) {
+	for err := zk.ErrConnectionClosed; ctx.Err() == nil && err != nil && !errors.Is(err, zk.ErrNoNode); {
+		err = l.conn.Delete(l.path, -1)
+	}
 	return failed("lock", l.path, err)
 }
`),
	// mostly at once; on a slow machine it polls less often, and is refused in a long hold
	wrong("polls without a pause", somewhere, `
-const pollInterval = 20 * time.Millisecond
+const pollInterval = 0
`),
	// "The parents are made for the lock, so they are of its kind." An ephemeral znode has no children.
	wrong("ephemeral parents", property.OneHolder, `
-err = create(conn, pathpkg.Dir(path), zk.FlagPersistent)
+err = create(conn, pathpkg.Dir(path), mode)
`),
	// the same as "polls without a pause"
	wrong("NewEphemeral polls without a pause", somewhere, `
-return &Lock{conn: conn, path: path, mode: zk.FlagEphemeral, poll: pollInterval}
+return &Lock{conn: conn, path: path, mode: zk.FlagEphemeral}
`),
	wrong("NewEphemeral does not give up", property.GivingUp, `
-if err := ctx.Err(); err != nil {
+if err := ctx.Err(); err != nil && l.mode == zk.FlagPersistent {
`),
	// "It did not exist when I looked. If it exists now, it is mine."
	alone("takes any znode for its own", property.OneHolder, `
 poll time.Duration // the pause between two tries
+oneByOne sync.Mutex // the goroutines of this process
…
-err := create(l.conn, l.path, l.mode)
+err := l.take()
 if err == nil {
 	return nil
 }
…
+func (l *Lock) take() error {
+	l.oneByOne.Lock()
+	defer l.oneByOne.Unlock()
+	there, _, err := l.conn.Exists(l.path)
+	if err != nil {
+		return err
+	}
+	if there {
+		return zk.ErrNodeExists
+	}
+	_, err = l.conn.Create(l.path, nil, l.mode, zk.WorldACL(zk.PermAll))
+	if !errors.Is(err, zk.ErrNoNode) {
+		return nil
+	}
+	err = create(l.conn, pathpkg.Dir(l.path), zk.FlagPersistent)
+	if err == nil {
+		return zk.ErrNodeExists // try again
+	}
+	return err
+}
+
 // create creates the znode at path, and its missing parents.
`, property.FailsClean),
	// "The caller has given up, so there is no lock."
	alone("forgets what it has just made", property.GivingUp, `
 err := create(l.conn, l.path, l.mode)
 if err == nil {
-	return nil
+	return ctx.Err()
 }
`),
	alone("a persistent znode", property.CrashFrees, `
-return &Lock{conn: conn, path: path, mode: zk.FlagEphemeral, poll: pollInterval}
+return &Lock{conn: conn, path: path, mode: zk.FlagPersistent, poll: pollInterval}
`),
	// "A directory is locked as a whole."
	alone("one znode for all locks", property.Unrelated, `
 poll time.Duration // the pause between two tries
+name string
…
-return &Lock{conn: conn, path: path, mode: zk.FlagEphemeral, poll: pollInterval}
+return &Lock{conn: conn, path: pathpkg.Dir(path) + "/all", name: path, mode: zk.FlagEphemeral, poll: pollInterval}
…
-return failed("unlock", l.path, l.conn.Delete(l.path, -1))
+return failed("unlock", l.name, l.conn.Delete(l.path, -1))
`),
	// "I have found that the parent is missing, so I can make it."
	alone("makes a parent alone, or fails", property.ParentsMade, `
-if err != nil && !errors.Is(err, zk.ErrNodeExists) {
-	return err
+if err != nil {
+	return fmt.Errorf("make the parent: %v", err)
 }
`),
	// "One call at a time."
	alone("Unlock waits for Lock", property.ManyShare, `
 poll time.Duration // the pause between two tries
+oneByOne sync.Mutex // the goroutines of this process
…
+l.oneByOne.Lock()
+defer l.oneByOne.Unlock()
 if err := check(ctx, l.conn, l.path); err != nil {
…
+l.oneByOne.Lock()
+defer l.oneByOne.Unlock()
 if err := check(context.Background(), l.conn, l.path); err != nil {
`),
	// "Nobody has changed it since I made it."
	alone("deletes version 0", property.WhateverIsInIt, `
-return failed("unlock", l.path, l.conn.Delete(l.path, -1))
+return failed("unlock", l.path, l.conn.Delete(l.path, 0))
`),
	// "It is my turn only after a deletion." When the session has ended, no deletion is notified any more.
	alone("waits for a deletion only", property.LostWhileWaiting, `
-select {
-case <-time.After(l.poll):
-case <-ctx.Done(): // the loop's first statement returns the reason
+there, _, gone, err := l.conn.ExistsW(l.path)
+if err != nil {
+	return failed("lock", l.path, err)
 }
+for there && ctx.Err() == nil {
+	select {
+	case event := <-gone:
+		there = event.Err != nil // a deletion, or somebody wrote into it
+		gone = nil // it fires once
+	case <-ctx.Done():
+	}
+}
`),
	// W24: it does not check whether the znode exists. Where many contend, one of many releases comes at that
	// moment, or none.
	// Somebody who writes into the znode may wake the waiter at the moment of a release, too.
	alone("watches what has gone", property.ReleaseSeen, `
+_, _, changed, err := l.conn.ExistsW(l.path)
+if err != nil {
+	return failed("lock", l.path, err)
+}
 select {
-case <-time.After(l.poll):
-case <-ctx.Done(): // the loop's first statement returns the reason
+case <-changed:
+case <-ctx.Done():
 }
`, property.OneHolder, property.ManyShare, property.WhateverIsInIt),
	alone("does not say which lock", property.UnlockTooMany, `
-return failed("unlock", l.path, l.conn.Delete(l.path, -1))
+err := l.conn.Delete(l.path, -1)
+if errors.Is(err, zk.ErrNoNode) {
+	return err
+}
+return failed("unlock", l.path, err)
`),
	// "Unlock was called, so the lock is not held any more."
	alone("unlocks once", property.UnlockRepeated, `
 poll time.Duration // the pause between two tries
+isHeld atomic.Bool
…
 err := create(l.conn, l.path, l.mode)
 if err == nil {
+	l.isHeld.Store(true)
 	return nil
 }
…
+if !l.isHeld.Swap(false) {
+	return failed("unlock", l.path, zk.ErrNoNode)
+}
 return failed("unlock", l.path, l.conn.Delete(l.path, -1))
`),
	// "The delete was not answered, so I send it again." Meanwhile another client may have the lock.
	alone("deletes again after a lost reply", property.UnlockRepeated, `
-return failed("unlock", l.path, l.conn.Delete(l.path, -1))
+err := l.conn.Delete(l.path, -1)
+if errors.Is(err, zk.ErrConnectionClosed) {
+	err = l.conn.Delete(l.path, -1)
+}
+return failed("unlock", l.path, err)
`),
	// "Unlock must delete the znode. If it is already deleted, all is well."
	alone("is glad if its znode has gone", property.LostTold, `
 poll time.Duration // the pause between two tries
+isHeld atomic.Bool
…
 err := create(l.conn, l.path, l.mode)
 if err == nil {
+	l.isHeld.Store(true)
 	return nil
 }
…
-return failed("unlock", l.path, l.conn.Delete(l.path, -1))
+wasHeld := l.isHeld.Swap(false)
+err := l.conn.Delete(l.path, -1)
+if errors.Is(err, zk.ErrNoNode) && wasHeld {
+	return nil
+}
+if err != nil {
+	l.isHeld.Store(wasHeld)
+}
+return failed("unlock", l.path, err)
`),
	// "Who has it now?"
	alone("looks on after its Unlock", property.QuietAfter, `
+defer func() {
+	go func() {
+		for range 30 {
+			time.Sleep(200 * time.Millisecond)
+			if _, _, err := l.conn.Exists(l.path); err != nil {
+				return
+			}
+		}
+	}()
+}()
 return failed("unlock", l.path, l.conn.Delete(l.path, -1))
`),
	// "Do I still hold it?"
	alone("asks all the time whether it holds", property.LongHold, `
 poll time.Duration // the pause between two tries
+unlocked atomic.Pointer[chan struct{}] // of the present hold
…
 err := create(l.conn, l.path, l.mode)
 if err == nil {
+	stop := make(chan struct{})
+	l.unlocked.Store(&stop)
+	go func() {
+		for {
+			select {
+			case <-time.After(4 * time.Millisecond):
+				go l.conn.Exists(l.path) // no need to wait for the answer
+			case <-stop:
+				return
+			}
+		}
+	}()
 	return nil
 }
…
+if stop := l.unlocked.Swap(nil); stop != nil {
+	close(*stop)
+}
 return failed("unlock", l.path, l.conn.Delete(l.path, -1))
`),
}
