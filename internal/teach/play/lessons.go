package main

import (
	"slices"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/show/page"
	"zklock/internal/teach/board"
	"zklock/internal/upkeep/words"
)

// A lesson is a situation to begin from, and what to do in it, one task after the other.
type lesson struct {
	N         int    `json:"n"`
	Title     string `json:"title"`
	Question  string `json:"question"`
	Situation string `json:"situation"`
	Tasks     []task `json:"tasks"`

	left, right string
	clients     int
	moves       []string // of client 0, client 1 and so on, in turn
	pace        string   // once they are made
}

// A task asks for one button, or for a wait. It is done when something is so on each board.
type task struct {
	Text   string `json:"text"`
	Do     string `json:"do"` // the button; "": one waits
	Client int    `json:"client"`

	done func(b *side) bool
	seen func(b *side) words.Text // in a sentence, with its counts; nil: there is nothing to say
}

// lessons are one for each chapter.
var lessons = []lesson{
	{
		N:         1,
		Title:     "The holder is killed",
		Question:  "One znode is the lock. Who gets it when the client that holds it is killed?",
		Situation: "Client 0 holds the lock of step 1, three wait.",
		left:      "1",
		clients:   4,
		moves:     slices.Repeat([]string{"lock"}, 4),
		pace:      real,
		Tasks: []task{
			{Text: "Kill client 0, which holds the lock.", Do: "kill", done: killed},
			{Text: "Wait until the server ends the session of client 0. That takes 5 seconds.",
				done: func(b *side) bool { return b.over(0) },
				seen: func(b *side) words.Text {
					return words.Of(
						"The session of client 0 has ended, and its znode is still there: nobody gets the lock. "+
							"Those who wait have sent %d requests since, %d of them writes.",
						b.Counters().Requests,
						b.Counters().Writes,
					)
				}},
		},
	},
	{
		N:         2,
		Title:     "The holder is killed, again",
		Question:  "The znodes stand in a queue, and die with their session. What does it cost to wait?",
		Situation: "Client 0 holds the lock of step 2, three wait.",
		left:      "2",
		clients:   4,
		moves:     slices.Repeat([]string{"lock"}, 4),
		pace:      real,
		Tasks: []task{
			{Text: "Kill client 0, which holds the lock.", Do: "kill", done: killed},
			{Text: "Wait until the server ends the session of client 0. That takes 5 seconds.", done: holds(1),
				seen: func(b *side) words.Text {
					return words.Of("The server has deleted the znode of client 0, and client 1 holds the lock. "+
						"Meanwhile the clients have sent %d requests: those who wait ask all the time.", b.Counters().Requests)
				}},
		},
	},
	{
		N:         3,
		Title:     "A release wakes the herd",
		Question:  "The server tells the clients that wait. How many of them does one release wake?",
		Situation: "Client 0 holds the lock, ten wait: in step 3, and beside it in step 4. The wire is slow, so that each message can be seen.",
		left:      "3",
		right:     "4",
		clients:   11,
		moves:     slices.Repeat([]string{"lock"}, 11),
		pace:      slow,
		Tasks: []task{
			{Text: "Guess how many clients will be notified in each step. Then unlock client 0.", Do: "unlock",
				done: func(b *side) bool { return b.are("idle", "holds") && b.Quiet() },
				seen: func(b *side) words.Text {
					return words.Of("%s, %s, 1 of them useful: that of client 1, which holds the lock now.",
						notifications(b.Counters().Notifications), lists(b.Counters().Lists))
				}},
		},
	},
	{
		N:         4,
		Title:     "A reply is lost",
		Question:  "The server makes a znode, and the client does not hear of it. Who deletes that znode?",
		Situation: "Client 0 holds the lock: in step 4, and beside it in step 5. The reply to the next create of client 1 will be lost.",
		left:      "4",
		right:     "5",
		clients:   3,
		moves:     []string{"lock", "losecreate"},
		pace:      real,
		Tasks: []task{
			{Text: "Lock client 1. The reply to its create is lost.", Do: "lock", Client: 1,
				done: func(b *side) bool {
					if !b.Quiet() {
						return false
					}
					mood := b.clients[1].Mood
					hasHeard := mood == zktest.MoodFailed || mood == zktest.MoodWaits
					return hasHeard && len(b.Queue()) == 2
				},
				seen: func(b *side) words.Text {
					if b.clients[1].Mood == zktest.MoodFailed {
						return words.Of("Client 1 got an error, and does not know that it has a znode.")
					}
					return words.Of("Client 1 has found its znode by the mark in its name, and waits.")
				}},
			{Text: "Lock client 2.", Do: "lock", Client: 2,
				done: func(b *side) bool { return b.clients[2].Mood == zktest.MoodWaits && b.Quiet() }},
			{Text: "Unlock client 0. Who is the next?", Do: "unlock",
				done: func(b *side) bool {
					isBlocked := b.are("idle", "got an error") && b.blockedBy(1)
					return isBlocked || b.are("idle", "holds")
				},
				seen: func(b *side) words.Text {
					if b.are("idle", "holds") {
						return words.Of("Client 1 holds the lock.")
					}
					return words.Of(
						"The first znode is that of client 1, which does not know it: client 2 waits, and nobody will ever get the lock.",
					)
				}},
		},
	},
	{
		N:         5,
		Title:     "The paused holder writes late",
		Question:  "A client that holds the lock is stopped, and goes on too late. Who protects the data?",
		Situation: "Client 0 holds the lock and is stopped, client 1 waits: in step 4, and beside it in step 5.",
		left:      "4",
		right:     "5",
		clients:   2,
		moves:     []string{"lock", "lock", "stop"},
		pace:      real,
		Tasks: []task{
			{Text: "Wait until the server ends the session of client 0. That takes 5 seconds.", done: holds(1),
				seen: func(*side) words.Text { return words.Of("Client 1 holds the lock, and client 0 does not know it.") }},
			{Text: "Let client 1 write to the store.", Do: "put", Client: 1,
				done: func(b *side) bool { return len(b.Store.Log) > 0 }},
			{Text: "Let client 0 write to the store. It is stopped: it will do so when it goes on.", Do: "put",
				done: func(b *side) bool { return b.clients[0].puts }},
			{Text: "Let client 0 go on.", Do: "continue", done: func(b *side) bool { return len(b.Store.Log) > 1 },
				seen: func(b *side) words.Text {
					if b.Store.Log[0].OK {
						return words.Of("The store has accepted the late write of client 0: nothing in it tells that it is late.")
					}
					return words.Of(
						"The store has refused the late write of client 0: its token %d is less than %d.",
						b.Store.Log[0].Token,
						b.Store.Token,
					)
				}},
		},
	},
	{N: 6, Title: "Readers and a writer", Question: "Readers can share a lock. When is it the writer's turn?",
		Situation: "Clients 0, 1 and 2 read, client 3 waits to write, client 4 waits to read.",
		left:      "6", clients: 5, moves: []string{"read", "read", "read", "lock", "read"}, pace: real,
		Tasks: []task{
			{Text: "Unlock client 0, which reads.", Do: "unlock",
				done: func(b *side) bool { return b.are("idle") && b.Quiet() },
				seen: func(*side) words.Text { return words.Of("Two still read: the writer waits.") }},
			{Text: "Unlock client 1, which reads.", Do: "unlock", Client: 1,
				done: func(b *side) bool { return b.are("idle", "idle") && b.Quiet() }},
			{Text: "Unlock client 2, the last that reads.", Do: "unlock", Client: 2,
				done: func(b *side) bool { return b.are("idle", "idle", "idle", "holds") && b.Quiet() },
				seen: func(b *side) words.Text {
					return words.Of(
						"Client 3 writes, alone. The last reader's release has sent %s.",
						notifications(b.Counters().Notifications),
					)
				}},
			{Text: "Unlock client 3, which writes.", Do: "unlock", Client: 3,
				done: func(b *side) bool { return b.are("idle", "idle", "idle", "idle", "reads") && b.Quiet() },
				seen: func(b *side) words.Text {
					return words.Of(
						"Client 4 reads. The writer's release has sent %s.",
						notifications(b.Counters().Notifications),
					)
				}},
		}},
}

func notifications(n int) words.Text { return page.Plural(n, "%s notification", "%s notifications") }

func lists(n int) words.Text { return page.Plural(n, "%s list", "%s lists") }

func killed(b *side) bool { return b.clients[0].Process == board.Dead }

func holds(client int) func(b *side) bool {
	return func(b *side) bool { return b.clients[client].Is == zktest.MoodHolds }
}

// are tells how the first clients are.
func (b *side) are(moods ...string) bool {
	for i, is := range moods {
		if b.clients[i].Is != is {
			return false
		}
	}
	return true
}

// blockedBy tells whether the page says that a client's znode blocks everybody.
func (b *side) blockedBy(client int) bool {
	return len(b.Banners) > 0 && b.Queue()[0].Owner == client
}

// over tells whether the server has ended a client's session. It asks the server.
func (b *side) over(client int) bool {
	session := b.clients[client].Session
	b.mu.Unlock()
	sessions, err := b.server.Sessions()
	b.mu.Lock()
	_, lives := sessions[session]
	hasAnswered := err == nil && len(sessions) > 0
	return hasAnswered && !lives
}

// A course is how far the reader is in a lesson: in none, if that is 0.
type course struct {
	Lesson int            `json:"lesson"`
	Begun  bool           `json:"begun"` // it lies
	Done   int            `json:"done"`  // tasks
	Seen   [][]words.Text `json:"seen"`  // of each task that is done: on each board
}

// guide notes what is done of a lesson.
func (s *service) guide() {
	s.mu.Mutex.Lock() // to read only, most of the time
	defer s.mu.Unlock()
	c := s.course
	if !c.Begun || c.Done == len(lessons[c.Lesson-1].Tasks) {
		return
	}
	t := lessons[c.Lesson-1].Tasks[c.Done]
	seen := []words.Text{}
	for _, b := range s.laid() {
		if len(b.clients) < lessons[c.Lesson-1].clients || !t.done(b) {
			return
		}
		if t.seen != nil {
			seen = append(seen, t.seen(b))
		}
	}
	if s.course.Begun && s.course.Lesson == c.Lesson { // no other lesson was chosen while the server was asked
		s.course.Done++
		s.course.Seen = append(s.course.Seen, seen)
		s.mu.locked.Add(1)
	}
}

// learn lays a lesson as soon as the one that is being laid lies. Of several that are chosen
// meanwhile only the last one is laid.
func (s *service) learn(n int) error {
	s.mu.Lock()
	waits := s.wanted > 0
	s.wanted = n
	s.mu.Unlock()
	if waits {
		return nil
	}
	err := s.goes(func() {
		s.mu.Lock()
		n := s.wanted
		s.wanted = 0
		s.mu.Unlock()
		s.open(n)
	})
	if err != nil {
		s.mu.Lock()
		s.wanted = 0
		s.mu.Unlock()
	}
	return err
}

// leaves ends a lesson, if there is one. The caller holds mu.
func (s *service) leaves() {
	s.course = course{Seen: [][]words.Text{}}
}

// open lays a lesson.
func (s *service) open(n int) {
	l := lessons[n-1]
	s.setPace(real)
	s.mu.Lock()
	s.leaves()
	s.course.Lesson = n
	s.mu.Unlock()
	left, _ := find(l.left)
	right, _ := find(l.right) // none: an empty side
	s.lay(1, right, l.clients)
	s.lay(0, left, l.clients)
	s.await(time.Minute, func() bool {
		return !slices.ContainsFunc(s.laid(), func(b *side) bool {
			return slices.ContainsFunc(b.clients, func(c *client) bool { return c.Process == board.Starting })
		})
	})
	for i, do := range l.moves {
		for _, b := range s.laid() {
			b.clients[i%l.clients].follows(do, do == "lock" || do == "read")
		}
	}
	for _, b := range s.laid() {
		b.settles()
		s.mu.Lock()
		b.Acts(s.now(), "lesson %d", n)
		s.mu.Unlock()
	}
	s.setPace(l.pace)
	s.mu.Lock()
	s.course.Begun = true
	s.mu.Unlock()
}

// settles returns when nothing has passed for a while. Those who keep asking never settle.
func (b *side) settles() {
	passed, quiet := -1, time.Now()
	b.await(2*time.Second, func() bool {
		if passed != b.Passed() {
			passed, quiet = b.Passed(), time.Now()
		}
		return time.Since(quiet) > 300*time.Millisecond
	})
}
