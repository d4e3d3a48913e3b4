package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
	"zklock/internal/zkserver"
)

// How many seconds a pause takes.
const (
	shortestPause = 1
	longestPause  = 10
)

// pauses stops the client for so many seconds. A write waits at it, and is sent when it continues. The next client
// writes when it gets the lock meanwhile. The caller holds mu.
func (c *client) pauses(seconds int) error {
	over := time.Now().Add(time.Duration(seconds) * time.Second)
	c.Pending = true
	if err := c.does("stop"); err != nil {
		return err
	}
	next := c.side.clients[c.Number+1]
	c.left.Go(func() { c.resumes(next, over) })
	return nil
}

// resumes lets the client continue when its pause is over.
func (c *client) resumes(next *client, over time.Time) {
	isAway := func() bool { return c.ended || !c.isStopped() } // another lesson, or somebody has let it continue
	hasLock := func() bool { return next.Is == actor.Holds }
	c.await(time.Until(over), func() bool { return isAway() || hasLock() })
	c.mu.Lock()
	writes := !isAway() && hasLock() && next.does("put") == nil
	c.mu.Unlock()
	c.await(time.Until(over), isAway)
	if writes {
		c.await(tooLong, func() bool { return isAway() || len(c.Store.Log) > 0 })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if isAway() {
		return
	}
	// The process gets the command only now: right after the stop a part of it could still run.
	if err := errors.Join(c.does("put"), c.does("continue")); err != nil {
		c.Say(stage.Event{At: c.now(), What: stage.Failed, Clients: []int{c.Number}, Text: err.Error(),
			Action: &stage.Action{Do: "continue", Client: &c.Number}})
	}
}

// pauseLesson is the lesson about a pause.
const pauseLesson = 5

// RecordPauses plays that lesson once with each pause, and returns the runs as the page and the book play them.
func RecordPauses(ctx context.Context, repo string, server *zkserver.Server) ([]byte, error) {
	s, stop, err := begin(ctx, repo, "", server, nil)
	if err != nil {
		return nil, err
	}
	kept := stage.Page{}
	for seconds := shortestPause; seconds <= longestPause && err == nil; seconds++ {
		fmt.Printf("a pause of %d s\n", seconds)
		var stories []stage.Replay
		if stories, err = s.recordPause(seconds); err == nil {
			kept.Titles = append(kept.Titles, pauseTitle(seconds))
			kept.Stories = append(kept.Stories, stories...)
		}
	}
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(kept.Data())
	return append(text, '\n'), err
}

func pauseTitle(seconds int) stage.Title {
	l := lessons[pauseLesson-1]
	return stage.Title{
		ID:    pauseID(seconds),
		Title: lang.Of("The holder pauses for %d s", "持有者停顿 %d 秒", seconds),
		Watch: text("Client 0 holds the lock and is stopped. When it continues, it writes to the store that the lock protects. Who had written before?",
			"客户端 0 持有锁，被停住了。它恢复运行以后，写入这把锁所保护的存储。在它之前，谁已经写过？"),
		Steps: []string{l.left, l.right},
		Pair:  []string{l.left, l.right},
	}
}

func pauseID(seconds int) string { return fmt.Sprintf("pause%d", seconds) }

// recordPause plays the lesson with one pause, and returns what happened on each side.
func (s *service) recordPause(seconds int) (stories []stage.Replay, err error) {
	s.open(pauseLesson)
	s.passes(time.Second) // the strips show what was before, and what follows
	for at, b := range s.laid() {
		// A session lasts from its client's last message on: each pause begins as long after one.
		s.await(time.Minute, func() bool {
			silent := time.Duration(s.now()-b.clients[0].LastHeard()) * time.Microsecond
			return silent > 500*time.Millisecond && silent < 515*time.Millisecond
		})
		if err := s.do(command{Do: "pause", N: seconds, Board: &at}); err != nil {
			return nil, err
		}
	}
	isDone := func() bool { return s.course.Done == len(lessons[pauseLesson-1].Tasks) }
	s.await(time.Minute, isDone)
	s.passes(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isDone() {
		return nil, fmt.Errorf("client 0 has not written after a pause of %d s", seconds)
	}
	for _, b := range s.laid() {
		b.renumbers()
		story := b.Replay(s.now())
		story.ID, story.Step = pauseID(seconds), b.Key
		// Its session has ended with its znode, whether or not it has a new one by now.
		story.Clients[stopped].Over = story.Nodes[0].To
		story.Phases = pausePhases(b, story, seconds)
		stories = append(stories, story)
	}
	return stories, nil
}

// recordedTokens are the tokens of the holders in each recorded run: those of docs/limits.md. The tokens that the server
// gives grow from run to run, and it would seem that the length of a pause changes them.
var recordedTokens = []int64{6, 9}

// renumbers gives the writes to the store these tokens, in the order of their own. The caller holds mu.
func (b *side) renumbers() {
	var given []int64
	for _, w := range b.Store.Log {
		given = append(given, w.Token)
	}
	slices.Sort(given)
	given = slices.Compact(given)
	shown := func(token int64) int64 {
		if token == 0 {
			return 0 // the lock gives none
		}
		return recordedTokens[slices.Index(given, token)]
	}
	for i := range b.Store.Log {
		b.Store.Log[i].Token = shown(b.Store.Log[i].Token)
	}
	b.Store.Token = shown(b.Store.Token)
}

// passes returns when this time has passed, or the service has ended.
func (s *service) passes(d time.Duration) { s.await(d, func() bool { return false }) }

// pausePhases returns the parts of a recorded pause, each with a sentence about its result.
func pausePhases(b *side, story stage.Replay, seconds int) []stage.Phase {
	pause := story.Phases[len(story.Phases)-1]
	last := story.Writes[len(story.Writes)-1]
	gotOver := last.At
	for _, state := range story.Clients[0].States {
		if state.At > pause.At && state.At < last.At {
			gotOver = state.At // the last state before the write is that of a process that runs again
		}
	}
	stays := text("Its session has not ended, and no other client has the lock.", "它的会话还没有结束，别的客户端都没有拿到锁。")
	if last.Late {
		stays = text("The session of client 0 has ended. Client 1 got the lock, and has written.",
			"客户端 0 的会话已经结束。客户端 1 拿到了锁，并且写入了存储。")
	}
	return []stage.Phase{
		{Title: text("Before the pause", "停顿之前"), Over: pause.At,
			Sum: text("Client 0 holds the lock, client 1 waits.", "客户端 0 持有锁，客户端 1 在等。")},
		{Title: lang.Of("Client 0 is stopped for %d s", "客户端 0 停住 %d 秒", seconds), At: pause.At, Over: gotOver, Sum: stays},
		{Title: text("Client 0 continues, and writes", "客户端 0 恢复运行，写入存储"), At: gotOver, Over: story.End, Sum: lateWrite(b)},
	}
}
