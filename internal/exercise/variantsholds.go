package exercise

import "zklock/internal/property"

// holderVariants are variants of steps 5 and 6, whose holds are the same.
var holderVariants = []Variant{
	right("looks at its connection after the list", `
-if connection.Err() != nil && !l.s.isClosed() {
-	pause() // until there is another one
-	continue
-}
…
 if before == "" {
+	if connection.Err() != nil && !l.s.isClosed() {
+		pause()
+		continue
+	}
`),
	right("Unlock returns both errors", `
-if lost != nil {
-	err = lost
-}
+err = errors.Join(lost, err)
`),
	// "The work is done when its caller calls Unlock."
	alone("Unlock does not end the context", property.ToldOfLoss, `
 if h.life.Err() != nil {
 	return context.Cause(h.life)
 }
+if h.count == 0 {
+	return ErrNotHeld
+}
…
-h.end(ErrNotHeld) // before another client can get the lock, and even if the server refuses the delete
`),
	// "The hold ends when the znode is deleted."
	alone("Unlock ends the context after its delete", property.ToldOfLoss, `
-h.end(ErrNotHeld) // before another client can get the lock, and even if the server refuses the delete
 err := h.lock.leaveInTime(h.mine)
+h.end(ErrNotHeld)
`),
	// "I take the connection before the list, as it should be."
	alone("a hold of the connection that broke", property.ToldOfLoss, `
-if connection.Err() != nil && !l.s.isClosed() {
-	pause() // until there is another one
-	continue
-}
`),
	// "The context has told of the loss, and the znode is deleted."
	alone("Unlock does not return the loss", property.ToldOfLoss, `
-lost := h.lost()
…
-if lost != nil {
-	err = lost
-}
`),
	// "The context has ended, and that is all the work needs to know."
	wrong("its context does not say why it has ended", property.ToldOfLoss, `
-forget := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
+forget := context.AfterFunc(h.life, func() { cancel(nil) })
…
-	cancel(context.Cause(h.life)) // AfterFunc cancels in a goroutine of its own, a moment later
+	cancel(nil)
`),
	wrong("Close does not say that the hold is lost", property.ToldOfLoss, `
-s.close(ErrLost) // before the servers delete the znodes of our holds
+s.close(nil)
`),
	// "My znode is in the list, so the place is mine."
	wrong("compares no sessions in its wait", property.KeptList, `
 names, stat, err := l.s.conn.Children(l.dir)
-if l.sessionEnded(mine) {
-	return nil, zk.ErrNoNode // a list of the next session may still show our znode
-}
+mine.session = l.s.conn.SessionID()
`),
	// "What has another guid, and is of my session, is left over from a call before."
	wrong("deletes what it does not know in its session", property.OwnPlace, `
 mine, err := l.find(prefix)
+if names, _, err := l.s.conn.Children(l.dir); err == nil {
+	for _, name := range names {
+		node := l.dir + "/" + name
+		_, stat, err := l.s.conn.Get(node)
+		if err == nil && stat.EphemeralOwner == l.s.conn.SessionID() && !strings.HasPrefix(node, prefix) {
+			_ = l.s.conn.Delete(node, -1)
+		}
+	}
+}
`),
	// "Somebody deleted my znode: the caller has to know."
	wrong("queues again only in a new session", property.NotBeside, `
-if errors.Is(err, zk.ErrNoNode) {
-	continue // our znode was deleted: queue up again
-}
+if errors.Is(err, zk.ErrNoNode) && l.sessionEnded(mine) {
+	continue
+}
`),
	// "The connection will be back soon."
	wrong("a Lock that waits goes on after Close", property.ToldOfLoss, `
-return unanswered(err) && !s.isClosed()
+return unanswered(err) || errors.Is(err, zk.ErrClosing)
`),
	// "The context ends with its parent, whatever the cause."
	wrong("a context without its parent's cause", property.ToldOfLoss, `
-ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
+ctx, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(parent), h.lock, h))
+context.AfterFunc(parent, func() { cancel(nil) })
`),
	// "An earlier delete of mine got no answer, so it was that one."
	alone("compares no sessions after its delete", property.LostTold, `
-case l.sessionEnded(mine):
-	return ErrLost
`),
	// "First the connection, and then what depends on it."
	alone("Close ends the holds last", property.ToldOfLoss, `
-s.close(ErrLost) // before the servers delete the znodes of our holds
-s.conn.Close()
+s.conn.Close()
+s.close(ErrLost)
`),
	// "The hold says whose it is, so one key is enough."
	alone("one key for the holds of all locks", property.LocksAgain, `
-ctx, cancel := context.WithCancelCause(context.WithValue(parent, h.lock, h))
+ctx, cancel := context.WithCancelCause(context.WithValue(parent, "hold", h))
…
-h, _ := ctx.Value(l).(*Hold)
+h, _ := ctx.Value("hold").(*Hold)
+if h != nil && h.lock != l {
+	return nil
+}
`),
	// "The work is done when Unlock is called."
	alone("the Unlock of an inner Lock ends the context", property.LocksAgain, `
 h.count--
+defer h.end(ErrNotHeld)
 return failed("unlock", h.mine.node, h.lost())
`, property.Tries), // which tries within a hold as well
	// "After the session timeout the servers have deleted the znode."
	alone("its deletes end with the session timeout", property.LostDeleteReply, `
-mayBeDone := false // an earlier delete got no answer: perhaps it was carried out
+mayBeDone, begun := false, time.Now()
…
 mayBeDone = true
+if time.Since(begun) > l.s.timeout {
+	return errNoAnswer
+}
 pause()
`),
	// "Unlock retries until the znode is deleted."
	alone("retries a refused delete", property.UnlockRepeated, `
-case !l.s.mustRetry(err):
-	return err
 }
 mayBeDone = true
`),
	// "If the server has made my znode, it is in the list."
	alone("lists without a sync", property.LaggingServer, `
-if _, err := l.s.conn.Sync(l.dir); err != nil {
-	return place{}, err
-}
`),
}
