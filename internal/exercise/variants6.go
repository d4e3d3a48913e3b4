package exercise

import "zklock/internal/property"

var variants6 = []Variant{
	// A writer waits for the last znode before its own, and a reader for the last writer's.
	right("a function for each kind", `
 own, ownKind, _ := number(mine)
-before, highest := "", 0
-for _, name := range names {
+waitsFor := map[kind]func(k kind) bool{
+	write: func(kind) bool { return true },
+	read:  func(k kind) bool { return k == write },
+}[ownKind]
+before := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
 	n, k, ok := number(name)
-	isBefore := ok && n < own
-	isNearest := before == "" || n > highest
-	bothRead := ownKind == read && k == read
-	if isBefore && isNearest && !bothRead {
-		before, highest = name, n
-	}
+	return !ok || n >= own || !waitsFor(k)
+})
+if len(before) == 0 {
+	return "", nil
 }
-return before, nil
+return slices.MaxFunc(before, func(a, b string) int {
+	n, _, _ := number(a)
+	m, _, _ := number(b)
+	return n - m
+}), nil
`),
	// The one to wait for is the nearest before ours that excludes ours.
	right("sorts the queue", `
-own, ownKind, _ := number(mine)
-before, highest := "", 0
-for _, name := range names {
-	n, k, ok := number(name)
-	isBefore := ok && n < own
-	isNearest := before == "" || n > highest
-	bothRead := ownKind == read && k == read
-	if isBefore && isNearest && !bothRead {
-		before, highest = name, n
+queue := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
+	_, _, isPlace := number(name)
+	return !isPlace
+})
+slices.SortFunc(queue, func(a, b string) int {
+	n, _, _ := number(a)
+	m, _, _ := number(b)
+	return n - m
+})
+_, own, _ := number(mine)
+for _, name := range slices.Backward(queue[:slices.Index(queue, mine)]) {
+	if _, other, _ := number(name); own == write || other == write {
+		return name, nil
 	}
 }
-return before, nil
+return "", nil
`),
	wrong("a writer waits for writers only", property.Shared, `
-bothRead := ownKind == read && k == read
+bothRead := ownKind == read && k == read || ownKind == write && k == read
`),
	wrong("a reader looks at the first only", property.Shared, `
 own, ownKind, _ := number(mine)
+first := slices.MinFunc(names, func(a, b string) int {
+	n, _, _ := number(a)
+	m, _, _ := number(b)
+	return n - m
+})
+if _, inside, _ := number(first); ownKind == read && inside == read {
+	return "", nil
+}
`),
	// "The queue is served in its order."
	wrong("a reader waits for all before it", property.Shared, `
-own, ownKind, _ := number(mine)
+own, _, _ := number(mine)
…
-n, k, ok := number(name)
+n, _, ok := number(name)
…
-bothRead := ownKind == read && k == read
-if isBefore && isNearest && !bothRead {
+if isBefore && isNearest {
`),
	// "Behind a writer all are queued, and a client that gets the lock wakes the next."
	wrong("behind a writer, a reader waits for readers", property.Shared, `
+for _, name := range names {
+	n, _, ok := number(name)
+	if before != "" && ok && n < own && n > highest {
+		before, highest = name, n
+	}
+}
 return before, nil
`),
	// A reader waits while a writer is in the queue, even behind the reader.
	wrong("W26", property.Shared, `
 own, ownKind, _ := number(mine)
+for _, name := range names {
+	if _, other, _ := number(name); ownKind == read && other == write {
+		return name, nil
+	}
+}
`),
	// "A reader waits for a writer, and the first one is the next to release." It is also woken by that
	// one, and goes back to sleep behind the second.
	wrong("a reader watches the first writer", property.WakesOne, `
+for _, name := range names {
+	n, k, ok := number(name)
+	if ownKind == read && ok && k == write && n < highest {
+		before, highest = name, n
+	}
+}
 return before, nil
`),
	// "A client that wants to write waits until the readers release."
	wrong("a reader that wants to write queues up", property.Upgrade, `
-if h := holdIn(ctx, l); h != nil {
+if h := holdIn(ctx, l); h != nil && (h.mine.kind == write || k == read) {
`),
	// "A goroutine that reads with this lock shares its hold with the others that read with it."
	alone("readers of one lock share a znode", property.Shared, `
-_ sync.Mutex // go vet warns of a copied RWLock: the copy would not find the holds of the original
+mu    sync.Mutex
+first *Hold // of the present readers
…
-func (l *RWLock) RLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, read, true) }
+func (l *RWLock) RLock(ctx context.Context) (*Hold, error) {
+	l.mu.Lock()
+	defer l.mu.Unlock()
+	if l.first != nil && l.first.life.Err() == nil {
+		return l.first, l.first.enter(read)
+	}
+	h, err := l.lock(ctx, read, true)
+	if err == nil {
+		l.first = h
+	}
+	return h, err
+}
`),
	// "A client that holds the lock may lock again."
	alone("a reader may write", property.Upgrade, `
-if h.mine.kind == read && k == write { // two readers that queued up to write would wait for each other
-	return ErrUpgrade
-}
`),
	// "A new place is a new place: the safe kind is the writer's."
	alone("a reader queues again as a writer", property.ReaderStays, `
-continue // our znode was deleted: queue up again
+k = write
+continue
`),
	// "Unlock was called, so one call less is due."
	wrong("counts a refused Unlock", property.UnlockRepeated, `
 if isRefused(err) {
+	h.count--
`),
	// "I am woken when the writer before me has gone, and readers do not wait for readers."
	wrong("a woken reader does not look again", property.WaiterCrash, `
 func (l *RWLock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
+	woken := false
…
-if before == "" {
+if before == "" || woken {
…
 case <-gone: // deleted; or the session has ended, or is closed: list again
+	woken = mine.kind == read
`),
	// "A writer that is woken is the next, because all before it have gone."
	wrong("a woken writer does not look again", property.WaiterCrash, `
 func (l *RWLock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
+	woken := false
…
-if before == "" {
+if before == "" || woken {
…
 case <-gone: // deleted; or the session has ended, or is closed: list again
+	woken = mine.kind == write
`),
	// "Readers hold the lock now, and a try that reads does not wait for anybody."
	wrong("a try that overtakes a writer", property.Tries, `
 if !mayWait {
+	first := slices.MinFunc(names, func(a, b string) int {
+		n, _, _ := number(a)
+		m, _, _ := number(b)
+		return n - m
+	})
+	if _, inside, _ := number(first); mine.kind == read && inside == read {
+		return newHold(l, mine, connection, stat.Pzxid), nil
+	}
`),
	// "A try does not wait, so two readers that try to write do not wait for each other."
	wrong("a reader may try to write", property.Upgrade, `
-func (l *RWLock) Lock(ctx context.Context) (*Hold, error) { return l.lock(ctx, write, true) }
+func (l *RWLock) Lock(ctx context.Context) (*Hold, error) {
+	if h := holdIn(ctx, l); h != nil && h.mine.kind == read {
+		return nil, failed("lock", l.dir, ErrUpgrade)
+	}
+	return l.lock(ctx, write, true)
+}
…
-if h.mine.kind == read && k == write { // two readers that queued up to write would wait for each other
-	return ErrUpgrade
-}
`),
	// "I have found my znode, and that is the place."
	wrong("forgets what it is when it finds its znode", property.Upgrade, `
-mine.kind = k
`),
	// "Within its hold a writer that reads is a reader from then on."
	wrong("a writer that reads becomes a reader", property.LocksAgain, `
+if k == read {
+	h.mine.kind = read
+}
 h.count++
`),
	// "Nobody is in the queue, so the lock is free, and Lock does not wait."
	wrong("a try that looks first, and then waits", property.Tries, lookFirst("RWLock", "write")),
	// "The goroutine looks whether its caller has left, and the buffer lets it end in any case."
	alone("its caller leaves after the last look", property.GivingUp, leavesAfterTheLook("ctx, k, mayWait")),
	wrong("tries for a tenth of a second", property.Tries, `
-func (l *RWLock) TryLock(ctx context.Context) (*Hold, error) { return l.lock(ctx, write, false) }
+func (l *RWLock) TryLock(ctx context.Context) (*Hold, error) {
+	brief, end := context.WithTimeout(ctx, 100*time.Millisecond)
+	defer end()
+	return l.lock(brief, write, true)
+}
`),
	wrong("a writer watches the first reader", property.WakesOne, `
-	if isBefore && isNearest && !bothRead {
-		before, highest = name, n
-	}
-}
-return before, nil
+	if isBefore && isNearest && !bothRead {
+		before, highest = name, n
+	}
+}
+lastWriter, first := -1, own
+for _, name := range names {
+	if n, k, ok := number(name); ok && n < own && k == write {
+		lastWriter = max(lastWriter, n)
+	}
+}
+for _, name := range names {
+	if n, _, ok := number(name); ok && n > lastWriter && n < first && ownKind == write {
+		before, first = name, n
+	}
+}
+return before, nil
`),
	// "The last reader lets the writers in."
	wrong("a writer watches the last reader", property.WakesOne, `
+for _, name := range names {
+	n, k, ok := number(name)
+	_, watched, _ := number(before)
+	if ownKind == write && ok && n < own && k == read && (watched == write || n > highest) {
+		before, highest = name, n
+	}
+}
 return before, nil
`),
	wrong("its token is that of its first list", property.Fenced, `
+first := int64(0)
 for ctx.Err() == nil {
 	connection := l.s.connection() // ends when the present connection does
…
-names, stat, err := l.s.conn.Children(l.dir)
+names, stat, err := l.s.conn.Children(l.dir)
+if err == nil && first == 0 {
+	first = stat.Pzxid
+}
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+return newHold(l, mine, connection, first), nil
`),
	// "Readers may share a token, so a reader keeps its first."
	alone("a reader's token is that of its first list", property.Fenced, `
+first := int64(0)
 for ctx.Err() == nil {
 	connection := l.s.connection() // ends when the present connection does
…
-names, stat, err := l.s.conn.Children(l.dir)
+names, stat, err := l.s.conn.Children(l.dir)
+if err == nil && (first == 0 || mine.kind == write) {
+	first = stat.Pzxid
+}
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+return newHold(l, mine, connection, first), nil
`),
	// "I waited for that znode, so the token comes from it." It is the token of the one before.
	wrong("a waiter's token is that of the znode before it", property.Fenced, waitersTokenIsOfTheZnodeBefore),
	// "A reader changes nothing, so any number of the directory will do."
	wrong("a reader that need not wait has the directory's number", property.Fenced, `
 func (l *RWLock) wait(ctx context.Context, mine place, mayWait bool) (*Hold, error) {
+	hasWaited := false
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+if mine.kind == read && !hasWaited {
+	stat.Pzxid = stat.Czxid
+}
+return newHold(l, mine, connection, stat.Pzxid), nil
…
 if !mayWait {
 	return nil, ErrLocked
 }
+hasWaited = true
`),
	// "The writer before me lets me in." When it has gone, the readers between are still there.
	wrong("a writer watches the last writer", property.WakesOne, `
+lastWriter, greatest := "", -1
+for _, name := range names {
+	if n, k, ok := number(name); ok && n < own && n > greatest && k == write {
+		lastWriter, greatest = name, n
+	}
+}
+if ownKind == write && lastWriter != "" {
+	return lastWriter, nil
+}
 return before, nil
`),
	// "A name ends in its kind and its number."
	wrong("takes any name with its ending for a place", property.Unrelated, `
-var queueName = regexp.MustCompile(`+"`^_c_.*-(__READ__|__WRIT__)([0-9]{10})$`"+`)
+var queueName = regexp.MustCompile("(__READ__|__WRIT__)([0-9]{10})$")
`),
	// "My place is the one that I queued up with."
	wrong("its hold has the place that it had first", property.LostWhileWaiting, keepsItsFirstPlace("RWLock", "ctx context.Context, k kind, mayWait bool", `
 	return nil, err
 }
+h.mine = first
 return h, nil
`)),
	wrong("gives up the place that it had first", property.LostWhileWaiting, keepsItsFirstPlace("RWLock", "ctx context.Context, k kind, mayWait bool", `
-go l.leave(mine) // until the znode is deleted, or the server refuses
+go l.leave(first)
`)),
	// "Its name begins as mine does, and the number is at the end." So does the name of another lock's directory.
	wrong("looks at the beginning and at the end of a name", property.Unrelated, `
-var queueName = regexp.MustCompile(`+"`^_c_.*-(__READ__|__WRIT__)([0-9]{10})$`"+`)
+var queueName = regexp.MustCompile("^_c_.*-(__READ__|__WRIT__).*([0-9]{10})$")
`),
	// "What the server puts behind the name is a number."
	wrong("takes any number for a place", property.Unrelated, `
-var queueName = regexp.MustCompile(`+"`^_c_.*-(__READ__|__WRIT__)([0-9]{10})$`"+`)
+var queueName = regexp.MustCompile("^_c_.*-(__READ__|__WRIT__)([0-9]+)$")
`),
	// "The name says what it is."
	wrong("its kind is the first in the name", property.Unrelated, `
-var queueName = regexp.MustCompile(`+"`^_c_.*-(__READ__|__WRIT__)([0-9]{10})$`"+`)
+var queueName = regexp.MustCompile("^_c_.*?-(__READ__|__WRIT__).*?([0-9]{10})$")
`),
	right("reads names without a regexp", `
-var queueName = regexp.MustCompile(`+"`^_c_.*-(__READ__|__WRIT__)([0-9]{10})$`"+`)
…
-parts := queueName.FindStringSubmatch(name)
-if parts == nil {
-	return 0, "", false
-}
-n, err := strconv.Atoi(parts[2])
-return n, kind(parts[1]), err == nil
+const digits = 10
+if !strings.HasPrefix(name, "_c_") || len(name) < digits {
+	return 0, "", false
+}
+before, last := name[:len(name)-digits], name[len(name)-digits:]
+for _, k := range []kind{read, write} {
+	if strings.HasSuffix(before, "-"+string(k)) {
+		number, err := strconv.ParseUint(last, 10, 31)
+		return int(number), k, err == nil
+	}
+}
+return 0, "", false
`),
	wrong("says nil when its delete is not answered", property.LostDeleteReply, `
-case <-time.After(l.s.timeout):
-	return errNoAnswer
+case <-time.After(l.s.timeout):
+	return nil
`),
	// "A writer cannot have the lock now."
	alone("says that the lock is held", property.Upgrade, `
-	return ErrUpgrade
+	return ErrLocked
`),
}

// waitersTokenIsOfTheZnodeBefore is a Lock, in steps 5 and 6, that takes its token from what it has watched.
const waitersTokenIsOfTheZnodeBefore = `
+token := int64(0)
 for ctx.Err() == nil {
 	connection := l.s.connection() // ends when the present connection does
…
-return newHold(l, mine, connection, stat.Pzxid), nil
+if token == 0 {
+	token = stat.Pzxid
+}
+return newHold(l, mine, connection, token), nil
…
-_, _, gone, err := l.s.conn.GetW(l.dir + "/" + before)
+_, watched, gone, err := l.s.conn.GetW(l.dir + "/" + before)
…
 select {
 case <-gone: // deleted; or the session has ended, or is closed: list again
+	token = watched.Czxid
`

// lookFirst is a TryLock that looks, and then calls Lock: somebody may arrive in between.
func lookFirst(lock, kind string) string {
	from, to, number := "l.lock(ctx, "+kind+", false)", "l.lock(ctx, "+kind+", true)", "_, _, ok"
	if kind == "" {
		from, to, number = "l.lock(ctx, false)", "l.lock(ctx, true)", "_, ok"
	}
	return `
-func (l *` + lock + `) TryLock(ctx context.Context) (*Hold, error) { return ` + from + ` }
+func (l *` + lock + `) TryLock(ctx context.Context) (*Hold, error) {
+	if err := check(ctx, l.s, l.dir); err != nil {
+		return nil, err
+	}
+	if h := holdIn(ctx, l); h == nil {
+		names, _, err := l.s.conn.Children(l.dir)
+		if err != nil && !errors.Is(err, zk.ErrNoNode) {
+			return nil, failed("try", l.dir, err)
+		}
+		for _, name := range names {
+			if ` + number + ` := number(name); ok {
+				return nil, failed("try", l.dir, ErrLocked)
+			}
+		}
+	}
+	return ` + to + `
+}
`
}

// leavesAfterTheLook is a Lock whose goroutine looks once whether its caller has left, and then puts the hold into a
// buffer that perhaps nobody empties. args are what acquire takes.
func leavesAfterTheLook(args string) string {
	return `
-var h *Hold
-result := make(chan error)
+type answer struct {
+	h   *Hold
+	err error
+}
+result := make(chan answer, 1)
 go func() {
-	var err error
-	h, err = l.acquire(` + args + `)
-	select {
-	case result <- err:
-	case <-ctx.Done(): // Lock has returned, and no caller will unlock
-		if err == nil {
-			_ = h.Unlock()
-		}
+	h, err := l.acquire(` + args + `)
+	if err == nil && ctx.Err() != nil {
+		_ = h.Unlock()
+		h, err = nil, context.Cause(ctx)
 	}
+	result <- answer{h, err}
 }()
 select {
-case err := <-result:
-	return h, failed("lock", l.dir, err)
+case a := <-result:
+	return a.h, failed("lock", l.dir, a.err)
 case <-ctx.Done():
`
}
