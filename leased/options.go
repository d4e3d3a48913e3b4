package leased

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"

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
// waited for half a timeout without a connection; a granted timeout that differs from the one asked for; a directory
// that another kind of lock uses. At Error: a znode that a server has refused to delete. Nothing waits for the logger, not even Close.
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

// WithoutContainers makes the directory of a lock an ordinary znode, if Lock has to create it. Without this option it
// is a container: the servers delete it when it has been empty for a while, and the next Lock creates it again. So a
// lock that is used once, such as one for each order, leaves nothing behind. Parents of the directory stay.
func WithoutContainers() Option {
	return func(s *Session) { s.noContainers.Store(true) }
}

// WithOnLost sets a function that is called for each hold that is lost, with the path of its lock and the reason, for
// example to count losses by lock. It runs on a goroutine of its own. Work under the lock learns of a loss through the
// hold's contexts, perhaps a little earlier or later. A hold whose znode a program has deleted is not reported: only its
// Unlock notices it.
func WithOnLost(f func(path string, why *LostError)) Option {
	return func(s *Session) { s.onLost = f }
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

// longestLabel is in bytes.
const longestLabel = 1 << 10

// apply sets the options, and refuses those that cannot work.
func (s *Session) apply(options []Option) error {
	for _, option := range options {
		if option == nil {
			return errors.New("an option is nil: leave it out")
		}
		option(s)
	}
	isBadDigest := func(l login) bool { return l.scheme == "digest" && !bytes.Contains(l.auth, []byte(":")) }
	switch {
	case slices.ContainsFunc(s.logins, isBadDigest):
		return errors.New(`a login with the scheme "digest" has no colon: want name:password`)
	case s.client.dial == nil:
		return errors.New("the dialer is nil: give one, or leave WithDialer out")
	case s.log.log == nil:
		return errors.New("the logger is nil: give one, or leave WithLogger out")
	case len(s.acl) == 0:
		return errors.New("the ACL is empty, which the servers refuse: give one, or leave WithACL out")
	case len(s.label) > longestLabel:
		return fmt.Errorf("a label of %d bytes: want at most %d", len(s.label), longestLabel)
	}
	return nil
}
