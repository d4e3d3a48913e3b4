package leased

import (
	"context"
	"errors"
)

// Election is for a task that one of several processes does at a time: the leader. It is a Mutex in the
// words of leadership: the process that holds the lock leads, and Queue of a Mutex on the same path lists the
// candidates.
type Election struct {
	_    noCopy
	lock *Mutex
}

// NewElection returns the election whose directory is path, as NewMutex does. The label of the session,
// see WithLabel, names the candidate to others.
func NewElection(s *Session, path string) *Election {
	return &Election{lock: NewMutex(s, path)}
}

// Campaign waits until this process leads, calls lead once, and resigns when lead returns, also by a
// panic. To lead again, call Campaign again, after lead has returned. Within lead, Campaign with lead's context
// is re-entry: the inner lead is called at once. With another context, it waits for itself.
//
// The context that lead is given ends with ctx, and when the leadership is lost: with a LostError as its
// cause, and before anybody else leads. lead has to return then. As long as it does not, and the session
// lives, nobody else leads.
//
// The token is the fencing token of this time of leading: see Hold.Token. A store has to see it before lead
// reads anything there: from then on it refuses those who have led before.
//
// The error has that of lead, and ErrLost if the leadership was lost. If ctx ends before this process leads,
// Campaign returns the error of Mutex.Lock, and lead is not called.
func (e *Election) Campaign(
	ctx context.Context, lead func(ctx context.Context, token int64) error,
) error {
	if e.lock == nil {
		return errors.New("leased: an Election that is the zero value: make it with NewElection")
	}
	return campaign(ctx, e.lock.Lock, lead)
}

// campaign is Campaign over any lock.
func campaign(
	ctx context.Context, lock func(context.Context) (*Hold, error), lead func(ctx context.Context, token int64) error,
) (err error) {
	if lead == nil {
		return errors.New("leased: Campaign needs a function that leads")
	}
	hold, err := lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, hold.Unlock()) }()
	return lead(hold.Context(ctx), hold.Token())
}

// joined is both errors. If both report the same loss, it is that of lead, unless lead has returned nothing but
// the loss: that of Unlock also names the znode.
func joined(ofLead, ofUnlock error) error {
	var lost *LostError
	sameLoss := errors.As(ofUnlock, &lost) && errors.Is(ofLead, lost)
	switch {
	case sameLoss && ofLead == error(lost):
		return ofUnlock
	case sameLoss:
		return ofLead
	}
	return errors.Join(ofLead, ofUnlock)
}

// Leader returns the label of the process that leads, "" if nobody does. It costs a list and a read.
//
// This is what our server knows, and the leadership may end at any moment: so it is for people, for metrics, and
// to pass a request on to the leader, which may have to refuse it. A process may do the task only within
// Campaign.
func (e *Election) Leader(ctx context.Context) (label string, err error) {
	if e.lock == nil {
		return "", errors.New("leased: an Election that is the zero value: make it with NewElection")
	}
	first, err := e.lock.q.participants(ctx, 1)
	if err != nil || len(first) == 0 {
		return "", err
	}
	return first[0].Label, nil
}
