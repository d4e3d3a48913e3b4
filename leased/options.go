package leased

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-zookeeper/zk"
)

// Option changes what Open does.
type Option func(*Session)

// WithDialer makes the session connect through dial, for TLS or for tests. dial
// gets the servers' addresses as they were given to Open.
func WithDialer(dial zk.Dialer) Option {
	return func(s *Session) { s.client.dial = dial }
}

// WithLogger sets the logger; without it nothing is logged. At Debug: the lines of the client library. At Info: a
// connection after an outage of which there was a warning. At Warn: locks that were lost; lines that
// were left out because the logger is too slow; calls to Lock that have
// waited for half a timeout without a connection; a granted timeout that differs from the one asked for. At
// Error: a znode that a server has refused to delete. Nothing waits for the logger, not even Close.
func WithLogger(log *slog.Logger) Option {
	return func(s *Session) { s.log = newJournal(log) }
}

// WithLabel sets the data of the znodes with which the session queues up. Then Queue, and get in zkCli.sh, show
// which process holds a lock, and which ones wait. Without this option the label is the host's name and
// the process ID.
func WithLabel(label string) Option {
	return func(s *Session) { s.label = []byte(label) }
}

// WithACL sets the ACL of the lock's directory, if Lock has to create it, and of the znodes with which the
// session queues up. Without this option everybody may do everything with them.
//
// A directory's ACL says who may list, create and delete in it. A znode's own ACL says who may read it. All
// clients of the lock must be able to read it, since a waiter watches the znode before its own.
//
// Parents of the directory that are missing are created open to everybody, since other services' locks may be
// there. To protect a parent, create it yourself.
func WithACL(acl []zk.ACL) Option {
	return func(s *Session) { s.acl = acl }
}

// WithContainers makes the directory of a lock a container, if Lock has to create it: the servers delete it when
// it has been empty for a while, and the next Lock creates it again. Use it for locks that are used once,
// such as one for each order. Parents of the directory stay.
func WithContainers() Option {
	return func(s *Session) { s.containers = true }
}

// login is one call of AddAuth.
type login struct {
	scheme string
	auth   []byte
}

// WithAuth logs in before Open returns, for example with ("digest", []byte("name:password")), and
// again on each connection and in each session that follows.
func WithAuth(scheme string, auth []byte) Option {
	return func(s *Session) { s.logins = append(s.logins, login{scheme, auth}) }
}

// WithoutLease makes the session follow the rule "no connection, no hold": all holds are lost
// when the connection is lost, or when nine tenths of the timeout have passed since the last answered ping was sent on
// it. Before the first answered ping, they count from the moment when the connection was made.
//
// Then a hold makes no writes except its create and its delete. The price: when the connection breaks
// for a moment, the holds are lost, and if the server is partitioned from the others, another client may acquire
// the lock before the holder is notified.
func WithoutLease() Option {
	return func(s *Session) { s.withoutLease = true }
}

const (
	smallestBuffer = 32 << 10
	largestBuffer  = 1 << 30
	longestLabel   = 1 << 10
)

// WithBuffer sets the size in bytes of the client library's two buffers, for requests and for
// answers, instead of 1.5 MB each. It is for a process that has very many sessions.
//
// A request that is longer is not sent. If an answer is longer, the library closes the connection,
// and connects again. If the list of a lock's queue, or the data of the znode before ours, does
// not fit, Lock retries, and does not return before its context ends. One name takes
// about 40 bytes.
//
// So use it only if you trust every program that may create or write znodes in the lock's
// directory. If a program creates a znode there whose path is about as long as the buffer, the library
// reconnects as long as the session lives, or it panics, and the process ends.
func WithBuffer(size int) Option {
	return func(s *Session) { s.client.buffer = size }
}

// apply sets the options, and refuses those that cannot work.
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
