package exercise

import "zklock/internal/property"

var variants4 = []Variant{
	right("asks first", `
+there, _, err := l.conn.Exists(l.dir + "/" + before)
+if err != nil {
+	return err
+}
+if !there {
+	continue
+}
 // GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
`),
	right("looks again after any event", `
-case event := <-gone:
-	if event.Err != nil { // the session has ended, or the client is closed
-		return event.Err
-	}
+case <-gone:
`),
	right("sorts the queue", `
-own, _ := number(mine)
-before, highest := "", 0
-for _, name := range names {
-	n, ok := number(name)
-	isBefore := ok && n < own
-	isNearest := before == "" || n > highest
-	if isBefore && isNearest {
-		before, highest = name, n
-	}
+queue := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
+	_, isPlace := number(name)
+	return !isPlace
+})
+slices.SortFunc(queue, func(a, b string) int {
+	n, _ := number(a)
+	m, _ := number(b)
+	return n - m
+})
+at := slices.Index(queue, mine)
+if at == 0 {
+	return "", nil
 }
-return before, nil
+return queue[at-1], nil
`),
	right("watches the children of the one before", `
-_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
+_, _, gone, err := l.conn.ChildrenW(l.dir + "/" + before)
`),
	// "The server notifies me when something happens to my znode."
	wrong("watches its own znode", atOnce, `
-_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
+_, _, gone, err := l.conn.GetW(node)
`),
	// "I wait for the lock, and the first in the queue has it."
	wrong("watches the holder", property.WakesOne, `
-isNearest := before == "" || n > highest
+isNearest := before == "" || n < highest
`),
	// "I wait for the deletion of my predecessor's znode; it is deleted; it is my turn."
	wrong("W8", property.WaiterCrash, `
 if errors.Is(err, zk.ErrNoNode) {
-	continue
+	return nil
…
-if event.Err != nil { // the session has ended, or the client is closed
-	return event.Err
-}
+return event.Err // the one before me is deleted: it is my turn
`),
	wrong("W9", property.NoWatchLeft, `
-_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
-if errors.Is(err, zk.ErrNoNode) {
-	continue
-}
+there, _, gone, err := l.conn.ExistsW(l.dir + "/" + before)
…
+if !there {
+	continue
+}
 select {
`),
	// "The time is up, so return to the caller."
	wrong("W12", property.GivingUp, `
-return failed("lock", l.dir, errors.Join(err, l.leave(node)))
+return failed("lock", l.dir, err)
`),
	wrong("W15", atOnce, `
+l.mu.Lock()
+defer l.mu.Unlock()
 for {
…
+woken := make(chan error, 1)
+go func() {
+	event := <-gone
+	l.mu.Lock()
+	defer l.mu.Unlock()
+	woken <- event.Err
+}()
 select {
-case event := <-gone:
-	if event.Err != nil { // the session has ended, or the client is closed
-		return event.Err
+case err := <-woken:
+	if err != nil {
+		return err
`),
	wrong("W18", atOnce, `
+	for {
+		isMine, err := l.tryLock()
+		if isMine || err != nil {
+			return err
+		}
+		select {
+		case <-time.After(time.Second):
+		case <-ctx.Done():
+			return ctx.Err()
+		}
+	}
+}
+
+func (l *Lock) tryLock() (bool, error) {
 	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
 	if err != nil {
-		return failed("lock", l.dir, err)
+		return false, err
 	}
-	if err := l.wait(ctx, node); err != nil {
-		return failed("lock", l.dir, errors.Join(err, l.leave(node)))
+	names, _, err := l.conn.Children(l.dir)
+	if err != nil {
+		return false, err
+	}
+	before, err := predecessor(names, pathpkg.Base(node))
+	if before != "" || err != nil {
+		return false, err
…
 l.node = node
-return nil
+return true, nil
`),
	wrong("W19", property.OneHolder, `
-if err != nil {
-	return err
+before := "null" // what Java prints if the list has failed
+if err == nil {
+	before, err = predecessor(names, pathpkg.Base(node))
 }
-before, err := predecessor(names, pathpkg.Base(node))
-if before == "" || err != nil {
+if before == "" {
…
 if errors.Is(err, zk.ErrNoNode) {
-	continue
+	return nil
`),
	wrong("W20", atOnce, `
-before, err := predecessor(names, pathpkg.Base(node))
+before, err := predecessor(names, node)
`),
	wrong("W21", somewhere, `
+names, _, err = l.conn.Children(l.dir)
+if err != nil {
+	return err
+}
+before, err = predecessor(names, pathpkg.Base(node))
+if err == nil && before == "" {
+	err = errors.New("no znode is before ours")
+}
+if err != nil {
+	return err
+}
 // GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
`),
	wrong("W22", property.FailsClean, `
+if _, _, err := l.conn.Children(l.dir); err != nil {
+	return err // the try block begins below
+}
 if err := l.wait(ctx, node); err != nil {
`),
	wrong("W23", property.GivingUp, `
-return failed("lock", l.dir, errors.Join(err, l.leave(node)))
+err = errors.Join(err, l.leave(node))
+if errors.Is(err, context.Canceled) {
+	return nil
+}
+return failed("lock", l.dir, err)
`),
	wrong("W24", property.ReleaseSeen, `
-_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
-if errors.Is(err, zk.ErrNoNode) {
-	continue
-}
+_, _, gone, err := l.conn.ExistsW(l.dir + "/" + before)
`),
	wrong("W25", property.Unrelated, `
-digits, ok := strings.CutPrefix(name, "lock-")
+_, digits, ok := strings.Cut(name, "lock-") // a guid may come before it
`),
	wrong("W28", property.FirstCome, `
+l.mu.Lock()
+l.node = node
+l.mu.Unlock()
 if err := l.wait(ctx, node); err != nil {
…
-l.mu.Lock()
-defer l.mu.Unlock()
-l.node = node
`),
	right("queues again", queuesAgain("mine")),
	// "I have a new znode." But it is not the one that it deletes.
	wrong("queues again, and keeps its old path", property.NotBeside, queuesAgain("node")),
	// "Its name begins as mine does, and the number is at the end." So does the name of another lock's directory.
	wrong("looks at the beginning and at the end of a name", property.Unrelated, beginningAndEnd),
	// "Look before you create."
	wrong("asks whether the directory exists", property.MadeOnce, `
+if there, _, err := l.conn.Exists(l.dir); err != nil {
+	return failed("lock", l.dir, err)
+} else if !there {
+	if _, err := create(l.conn, l.dir, zk.FlagPersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
+		return failed("lock", l.dir, err)
+	}
+}
 node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
`),
	wrong("deletes all znodes of its session", property.FailsClean, deletesAllOfItsSession("true")),
	// "The holder's znode is in use, and the others are left over."
	wrong("deletes the znodes of its session that do not hold the lock", property.FailsClean,
		deletesAllOfItsSession("node != l.node")),
	// "Nobody is in the queue."
	wrong("no directory, no queue", property.NotBeside, `
 names, _, err := l.conn.Children(l.dir)
+if errors.Is(err, zk.ErrNoNode) {
+	return nil
+}
`),
	// "The holder should know how many wait."
	alone("tells the holder that it waits", property.ArrivalWakesNobody, `
+isNew := true
 for {
…
+if isNew {
+	first := before
+	for next := first; next != ""; next, _ = predecessor(names, first) {
+		first = next
+	}
+	if _, err := l.conn.Set(l.dir+"/"+first, []byte("somebody waits"), -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
+		return err
+	}
+	isNew = false
+}
 // GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
`),
	// "I am the next but one, so I also watch the holder."
	alone("the second waiter watches the holder", property.WakesOne, `
-for {
+var holderGone <-chan zk.Event // nil never fires
+for isNew := true; ; isNew = false {
…
+if first, _ := predecessor(names, before); isNew && first != "" {
+	if second, _ := predecessor(names, first); second == "" {
+		_, _, holderGone, _ = l.conn.GetW(l.dir + "/" + first)
+	}
+}
 // GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
…
+case event := <-holderGone:
+	if event.Err != nil {
+		return event.Err
+	}
+	holderGone = nil
 case <-ctx.Done():
`),
	// "The znode before mine is deleted, and it was not the holder's. Now I wait for the holder."
	alone("then watches the first", property.WakesOneLater, `
+isNew := true
 for {
…
+for next := before; next != "" && !isNew; next, _ = predecessor(names, before) {
+	before = next
+}
+isNew = false
 // GetW, not ExistsW: if the znode was deleted meanwhile, GetW sets no watch.
`),
	// "I am woken, look again, and am woken once more: now it is my turn."
	wrong("looks again once", property.WaiterCrash, `
-for {
+for round := 0; ; round++ {
+	if round == 2 {
+		return nil
+	}
 	names, _, err := l.conn.Children(l.dir)
`),
	// "After the delete I do not hold the lock any more."
	wrong("forgets its znode before the delete", property.UnlockRepeated, `
+l.node = ""
 err := l.conn.Delete(node, -1)
-if err == nil || errors.Is(err, zk.ErrNoNode) {
-	l.node = ""
-}
 return failed("unlock", node, err)
`),
	// "Ten times for nothing: something must be wrong."
	alone("counts its wake-ups", property.WaiterCrash, `
-for {
+for woken := 0; ; woken++ {
+	if woken > 10 {
+		return errors.New("woken ten times, and still not the first")
+	}
	names, _, err := l.conn.Children(l.dir)
`),
	// "In this process a mutex will do."
	alone("a mutex for the goroutines", property.ManyShare, mutexForGoroutines),
	// "The one before me was the first, and its znode has changed: it is my turn."
	wrong("woken behind the first", property.WhateverIsInIt, `
 if event.Err != nil { // the session has ended, or the client is closed
 	return event.Err
 }
+if first, err := predecessor(names, before); first == "" && err == nil {
+	return nil
+}
`),
	// "Nobody has changed it since I made it."
	alone("deletes version 0", property.WhateverIsInIt, `
 node := l.node
-err := l.conn.Delete(node, -1)
+err := l.conn.Delete(node, 0)
`),
	// "Another change of the znode is not what I wait for." But the watch has fired, and will not fire again.
	alone("waits on for a deletion", property.WhateverIsInIt, `
-select {
-case event := <-gone:
-	if event.Err != nil { // the session has ended, or the client is closed
-		return event.Err
+for isDeleted := false; !isDeleted; {
+	select {
+	case event := <-gone:
+		if event.Err != nil {
+			return event.Err
+		}
+		isDeleted = event.Type == zk.EventNodeDeleted
+		gone = nil
+	case <-ctx.Done():
+		return ctx.Err()
 	}
-case <-ctx.Done():
-	return ctx.Err()
 }
`),
	// "They ask for the same list at the same moment."
	alone("goroutines share a list", property.ManyShare, `
-mu   sync.Mutex
+mu      sync.Mutex
+listing *listing // under way
…
-names, _, err := l.conn.Children(l.dir)
+names, err := l.list()
…
+type listing struct {
+	done  chan struct{}
+	names []string
+	err   error
+}
+
+// list lists the queue. Goroutines that ask at the same moment share one request.
+func (l *Lock) list() ([]string, error) {
+	l.mu.Lock()
+	if shared := l.listing; shared != nil {
+		l.mu.Unlock()
+		<-shared.done
+		return shared.names, shared.err
+	}
+	mine := &listing{done: make(chan struct{})}
+	l.listing = mine
+	l.mu.Unlock()
+	mine.names, _, mine.err = l.conn.Children(l.dir)
+	l.mu.Lock()
+	l.listing = nil
+	l.mu.Unlock()
+	close(mine.done)
+	return mine.names, mine.err
+}
+
 // leave deletes the znode of a waiter that has given up.
`),
	right("releases by a multi", `
 node := l.node
-err := l.conn.Delete(node, -1)
+_, err := l.conn.Multi(&zk.DeleteRequest{Path: node, Version: -1})
`),
	wrong("takes a refused create for a missing parent", property.ParentsMade, `
-if !errors.Is(err, zk.ErrNoNode) {
+if err == nil || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNodeExists) {
`),
	wrong("takes a refused read for a deletion", property.FailsClean, `
-if errors.Is(err, zk.ErrNoNode) {
+if err != nil && !errors.Is(err, zk.ErrConnectionClosed) {
`),
	// A goroutine of the client that holds the lock overtakes all other clients.
	wrong("hands the lock on in its process", property.FirstCome, `
 mu   sync.Mutex
+waiting int // goroutines that wait for this lock
+handed  chan struct{}
…
-return &Lock{conn: conn, dir: path}
+return &Lock{conn: conn, dir: path, handed: make(chan struct{})}
…
 if err := ctx.Err(); err != nil {
 	return failed("lock", l.dir, err)
 }
+l.mu.Lock()
+isHeldHere := l.node != ""
+if isHeldHere {
+	l.waiting++
+}
+l.mu.Unlock()
+if isHeldHere {
+	select {
+	case <-l.handed:
+		return nil
+	case <-ctx.Done():
+		l.mu.Lock()
+		l.waiting--
+		l.mu.Unlock()
+		return failed("lock", l.dir, ctx.Err())
+	}
+}
…
 node := l.node
+if l.waiting > 0 {
+	l.waiting--
+	go func() { l.handed <- struct{}{} }()
+	return nil
+}
`),
	// "The context has ended, and the caller knows why."
	alone("does not tell of its failed delete", property.GivingUp, `
-return failed("lock", l.dir, errors.Join(err, l.leave(node)))
+_ = l.leave(node)
+return failed("lock", l.dir, err)
`),
	// "I hold the lock, so the first in the queue is mine."
	alone("after a lost reply it deletes the first", property.UnlockRepeated, deletesTheFirst),
	// "It was sent: only the reply has been lost."
	alone("does not tell of a delete without an answer", property.GivingUp, `
-if err == nil || errors.Is(err, zk.ErrNoNode) { // or deleted with its session
+if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrConnectionClosed) {
`),
	right("deletes until its znode has gone", `
-err := l.conn.Delete(node, -1)
-if err == nil || errors.Is(err, zk.ErrNoNode) { // or deleted with its session
-	return nil
-}
-return fmt.Errorf("leave the queue: delete %s: %w", node, err)
+for {
+	err := l.conn.Delete(node, -1)
+	switch {
+	case err == nil || errors.Is(err, zk.ErrNoNode): // or deleted with its session
+		return nil
+	case errors.Is(err, zk.ErrClosing) || l.conn.State() == zk.StateDisconnected:
+		return fmt.Errorf("leave the queue: delete %s: %w", node, err)
+	}
+	time.Sleep(10 * time.Millisecond)
+}
`),
	right("deletes in the background until its znode has gone", `
-return failed("lock", l.dir, errors.Join(err, l.leave(node)))
+go func() {
+	for errors.Is(l.leave(node), zk.ErrNoAuth) || l.conn.State() != zk.StateHasSession {
+		time.Sleep(10 * time.Millisecond)
+	}
+	_ = l.leave(node) // the first delete may have been lost
+}()
+return failed("lock", l.dir, err)
`),
	// The queue keeps the others out.
	right("gives its mutex back before the delete", `
 node := l.node
+l.mu.Unlock()
 err := l.conn.Delete(node, -1)
-if err == nil || errors.Is(err, zk.ErrNoNode) {
+l.mu.Lock()
+if (err == nil || errors.Is(err, zk.ErrNoNode)) && l.node == node {
`),
	// "The one before me has left since I listed, so it is my turn."
	alone("takes a missing predecessor for its turn", property.WaiterCrash, `
 if errors.Is(err, zk.ErrNoNode) {
-	continue
+	return nil
`),
	// "I have given up: is my znode really gone?"
	wrong("looks whether its znode has gone", property.NoWatchLeft, looksAfterItsDelete),
	// "A mutex is not held during a request."
	wrong("gives its mutex back, and clears the next znode", property.ManyShare, givesItsMutexBack),
	// "Lock and Unlock write the same field, so one mutex keeps them apart."
	wrong("waits with its mutex", property.ManyShare, waitsWithItsMutex),
	// "The directory must exist before anybody locks."
	wrong("New makes the directory", atOnce, `
 func New(conn *zk.Conn, path string) *Lock {
+	if conn != nil {
+		_, _ = create(conn, path, zk.FlagPersistent)
+	}
`),
}
