package leased

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-zookeeper/zk"
)

// Option changes what Open does.
type Option func(*Session)

// WithDialer makes the session connect through dial, for TLS or for tests. It is
// given the servers' addresses as they were given to Open.
func WithDialer(dial zk.Dialer) Option {
	return func(s *Session) { s.client.dial = dial }
}

// WithLogger gives the logger the lines of the client library, at the level Debug, and this
// package's own. At Warn: locks that were lost; calls to Lock that have waited for half a time-out without a
// connection; a time-out that is granted and is not the one asked for. At Error: a release that a server has
// refused. Nothing waits for the logger, not even Close.
func WithLogger(log *slog.Logger) Option {
	return func(s *Session) { s.log = newJournal(log) }
}

// WithLabel sets the data of the znodes with which the session queues up, so that
// get in zkCli.sh tells which process holds a lock, and which ones wait. Otherwise it is the host's name and
// the process's number.
func WithLabel(label string) Option {
	return func(s *Session) { s.label = []byte(label) }
}

// WithACL sets the ACL of the lock's directory, if Lock has to make it, and of the znodes with which the
// session queues up. Otherwise everybody may do everything with them.
//
// A directory's ACL says who may list, create and delete in it. A znode's own ACL says who may read it: all
// clients of the lock must, for to wait is to watch the znode before one's own.
//
// What is missing above the lock's directory is made open to everybody, for other services' locks may stand
// there. To protect it, make it yourself.
func WithACL(acl []zk.ACL) Option {
	return func(s *Session) { s.acl = acl }
}

// WithContainers makes the directory of a lock a container, if Lock has to make it: the servers delete it when
// it has been empty for a while, and the next Lock makes it anew. Take it for locks that are used once,
// such as one for each order. What is above the directory stays.
func WithContainers() Option {
	return func(s *Session) { s.containers = true }
}

// login is one call of AddAuth.
type login struct {
	scheme string
	auth   []byte
}

// WithAuth logs in before Open returns, as with ("digest", []byte("name:password")), and
// again on each connection and in each session that follows.
func WithAuth(scheme string, auth []byte) Option {
	return func(s *Session) { s.logins = append(s.logins, login{scheme, auth}) }
}

// WithoutLease makes the session go by the rule "no connection, no hold": all holds are lost
// when the connection is lost, or when for nine tenths of the time-out nothing that was sent has been
// answered on it. Then a hold makes no write but its create and its delete. The price: a connection that breaks
// for a moment costs the holds, and if the server is partitioned from the others, another client can acquire the
// lock before the holder is notified.
func WithoutLease() Option {
	return func(s *Session) { s.withoutLease = true }
}

const (
	smallestBuffer = 32 << 10
	largestBuffer  = 1 << 30
	longestLabel   = 1 << 10
)

// WithBuffer gives the client library so many bytes to send a request, and as many to
// read an answer, in place of 1.5 MB each: for a process that has very many sessions.
//
// A longer request is not sent. If an answer is longer, the library closes the connection,
// and connects again. If the list of a lock's queue does not fit, or the data of the znode
// before ours, Lock retries it, and does not return before its context ends. One name takes
// about 40 bytes.
//
// So use it only if you trust every client that may create or write znodes in the lock's
// directory. If somebody makes one there whose path is about as long as the buffer, the library
// connects again and again, as long as the session lives, or it panics, and the process ends.
func WithBuffer(size int) Option {
	return func(s *Session) { s.client.buffer = size }
}

// apply sets the options, and refuses what cannot work.
func (s *Session) apply(options []Option) error {
	for _, option := range options {
		if option == nil {
			return errors.New("an option is nil: leave it out")
		}
		option(s)
	}
	buffer := s.client.buffer
	badBuffer := buffer < smallestBuffer || buffer > largestBuffer
	switch {
	case s.client.dial == nil:
		return errors.New("the dialer is nil: give one, or leave WithDialer out")
	case s.log.log == nil:
		return errors.New("the logger is nil: give one, or leave WithLogger out")
	case len(s.acl) == 0:
		return errors.New("the ACL is empty, which the servers refuse: give one, or leave WithACL out")
	case len(s.label) > longestLabel:
		return fmt.Errorf("a label of %d bytes: want at most %d", len(s.label), longestLabel)
	case buffer != 0 && badBuffer:
		return fmt.Errorf("a buffer of %d bytes: give %d to %d, or leave WithBuffer out",
			buffer, smallestBuffer, largestBuffer)
	}
	return nil
}
