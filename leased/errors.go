package leased

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
)

// The errors for errors.Is.
var (
	// ErrLocked says that another client holds the lock, or is queued before this one. It may be another goroutine
	// of this process. The error is also a LockedError, which says who it is.
	ErrLocked = errors.New("another caller holds the lock, or is queued before this one")

	// ErrNoAnswer says that no server has answered in time, or that too few answers have come in time to rely on the
	// session again after an interruption.
	ErrNoAnswer = errors.New("no server has answered")

	// ErrNotHeld says that no Unlock was due.
	ErrNotHeld = errors.New("nothing to unlock: one Unlock is due for each Lock that has returned a hold")

	// ErrLost says that a lock was lost. The error is also a LostError, which says why.
	ErrLost = errors.New("the lock was lost")

	// ErrUpgrade says that a reader has called Lock or TryLock with the context of its own hold.
	ErrUpgrade = errors.New("Lock with the context of a reader's hold: two readers that do so would wait for " +
		"each other; call Unlock first")
)

// LockedError is the error of a call that did not get the lock because of another one: errors.Is(err, ErrLocked) is
// true.
type LockedError struct {
	// The path and the data of the znode that the call has waited for, or would have to wait for: see WithLabel. For a
	// call that waits for another goroutine of its Cohort, Znode is "".
	Znode string
	Label string

	// SameProcess reports whether the other one is a call over this same Session. A process should have only one. It
	// may be another request that this process serves. Or it is the caller itself, which holds the lock, and has not
	// given Lock a context of that hold.
	SameProcess bool
}

func (e *LockedError) Error() string {
	who := fmt.Sprintf("%s, whose label is %.100q", pathpkg.Base(e.Znode), e.Label)
	switch {
	case e.Znode == "":
		who = fmt.Sprintf("another goroutine of this process, whose label is %.100q", e.Label)
	case e.SameProcess:
		who += ", in this same process"
	}
	return ErrLocked.Error() + ": " + who
}

func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// errTooFewAnswers is the error of a call that is the first in the queue when it gives up, and has no lease yet.
var errTooFewAnswers error = tooFewAnswers{}

type tooFewAnswers struct{}

func (tooFewAnswers) Error() string {
	return "the lock is free, and too few answers have come yet to rely on the session"
}

func (tooFewAnswers) Is(target error) bool { return target == ErrNoAnswer }

// Reason says why a lock was lost, in a few words. A metric can have it as a label.
type Reason string

// The reasons.
const (
	ReasonLeaseOver Reason = "lease over" // no answered write has renewed the lease in time
	ReasonExpired   Reason = "expired"    // the servers have ended the session
	ReasonClosed    Reason = "closed"     // the session was closed by its own process
	ReasonDeleted   Reason = "deleted"    // a program has deleted the znode: only Unlock notices it
)

// LostError is the error of a lock that was lost: errors.Is(err, ErrLost) is true. It is the cause
// of the hold's contexts, and Unlock returns it, with the znode's path in the text.
type LostError struct {
	Reason Reason
	detail string
}

func (e *LostError) Error() string { return ErrLost.Error() + ": " + e.detail }

func (e *LostError) Is(target error) bool { return target == ErrLost }

var (
	// The text names no time: the lease counts from a write that may be long ago (README.md, "Which
	// timeout"), so it can end soon after the last answer.
	errUnanswered = &LostError{
		ReasonLeaseOver, "the lease is over: no answered write has renewed it, so the session may have ended",
	}
	errExpired      = &LostError{ReasonExpired, "the servers have ended the session"}
	errZnodeDeleted = &LostError{ReasonDeleted, "a program has deleted its znode"}
)

// These say how a session was closed.
const (
	byClose      = "Close was called"
	byConnection = "its zk.Conn was closed"
)

func lostClosed(how string) *LostError {
	return &LostError{ReasonClosed, "the session was closed: " + how}
}

// longestPath leaves room for the rest of a request. The servers read up to 1 MB (jute.maxbuffer);
// they close the connection on a longer request, and the lock would retry it forever.
const longestPath = 16 << 10

// check refuses a context, a session or a path with which no lock can work.
func check(ctx context.Context, s *Session, path string) error {
	switch {
	case ctx == nil:
		return errors.New("leased: the context is nil: give context.Background()")
	case s == nil || s.conn == nil:
		return errors.New("leased: the session is nil or empty: " +
			"pass what Open has returned to NewMutex, NewRWMutex or NewCohort")
	case len(path) > longestPath:
		return fmt.Errorf("leased: a path of %d bytes, which begins with %.40q: want at most %d",
			len(path), path, longestPath)
	case !strings.HasPrefix(path, "/") || path == "/" || path != pathpkg.Clean(path):
		return fmt.Errorf("leased: path %.40q: want an absolute path below the root, such as /locks/orders", path)
	}
	for _, element := range strings.Split(path, "/") {
		if placeName.MatchString(element) {
			return fmt.Errorf("leased: path %.40q: its element %.60q looks like the name of a znode "+
				"in a lock's queue: choose another name", path, element)
		}
	}
	if at := strings.IndexFunc(path, refusedInPath); at >= 0 {
		char, _ := utf8.DecodeRuneInString(path[at:])
		return fmt.Errorf("leased: path %.40q: the servers refuse the character %U: %w", path, char, zk.ErrInvalidPath)
	}
	return nil
}

// refusedInPath reports which characters the servers refuse: control characters, Unicode's private use,
// and all from U+FFF0 on, such as the emoji. Bytes that are not UTF-8 read as U+FFFD.
func refusedInPath(char rune) bool {
	isControl := char <= 0x1f || char >= 0x7f && char <= 0x9f
	isPrivate := char >= 0xd800 && char <= 0xf8ff
	return isControl || isPrivate || char >= 0xfff0
}

// unanswered reports whether a request was not answered: the connection has failed or
// is being closed, or the session has ended or moved to another connection. It is not known whether the
// servers have carried out the request, unless nothingDone knows it.
func unanswered(err error) bool {
	noAnswers := []error{
		zk.ErrConnectionClosed,
		zk.ErrNoServer,
		zk.ErrSessionExpired,
		zk.ErrSessionMoved,
		zk.ErrClosing,
	}
	for _, noAnswer := range noAnswers {
		if errors.Is(err, noAnswer) {
			return true
		}
	}
	return false
}

// nothingDone reports whether the servers have not carried out a request, and will not: no server
// could be reached, so nothing was sent, or the server was too busy.
func nothingDone(err error) bool {
	return errors.Is(err, zk.ErrNoServer) || isThrottled(err)
}

// Error codes for which the client library has no names.
const (
	unimplemented = -6
	localSession  = -120
	loginDemanded = -124
	quotaExceeded = -125
	throttled     = -127
)

// hasCode reports whether err is the library's error for such a code.
func hasCode(err error, code int) bool {
	return err != nil && strings.Contains(err.Error(), fmt.Sprintf("unknown error: %d", code))
}

// whyEnded returns why a context has ended.
func whyEnded(ctx context.Context) error {
	cause := context.Cause(ctx)
	// The texts are compared, and not the errors: a context need not be one of Go's own, and
	// an error of a type that cannot be compared would panic.
	err := ctx.Err()
	noCauseGiven := cause.Error() == err.Error()
	if noCauseGiven {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// endedBefore returns the error of a call whose context had ended before the call: then no request was made.
func endedBefore(ctx context.Context) error {
	return fmt.Errorf("the context had ended before the call: %w", whyEnded(ctx))
}

// isRefused reports whether leave has failed because the server has refused the delete: then the znode
// still exists.
func isRefused(leaveErr error) bool {
	return leaveErr != nil && !errors.Is(leaveErr, ErrLost)
}

// failed returns an error that says what was being done to which path, why it has failed and, where something
// helps, what to do. For nil it returns nil.
func failed(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("leased: %s %s: %w%s", what, short(path), err, advice(err))
}

// short returns a path as an error shows it. A very long path is cut to its beginning and its end, which has
// the znode's number.
func short(path string) string {
	const half = 50 // bytes
	if len(path) <= 2*half {
		return path
	}
	return strings.ToValidUTF8(path[:half]+"…"+path[len(path)-half:], "")
}

// advice returns what to do about an error, if there is something.
func advice(err error) string {
	switch {
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return " (a znode on this path is ephemeral and can have no children: choose another path)"
	case errors.Is(err, zk.ErrNoAuth):
		return " (the session lacks the permission: look at the ACL there, or log in with WithAuth or AddAuth)"
	case hasCode(err, loginDemanded):
		return " (the servers want a login: pass the option WithAuth to Open)"
	case hasCode(err, localSession):
		return " (the servers gave a local session, which can make no ephemeral znode: set" +
			" localSessionsUpgradingEnabled=true there)"
	case hasCode(err, quotaExceeded):
		return " (a quota of the servers is used up: look at setquota on this path)"
	case unanswered(err): // the lock repeats such a request, unless the session is closed
		return " (the session is closed: open another one)"
	}
	return ""
}

// usedUp is the error of a directory that has given all its numbers.
const usedUp = "the directory's numbers are used up: delete it when its queue is empty"
