package leased

import (
	"context"
	"errors"
)

// Election is for a task that only one of several processes, the leader, may do at a time. It is made of a Mutex:
// the process that holds the lock leads, and the Queue of a Mutex on the same path lists the candidates.
type Election struct {
	_    noCopy
	lock *Mutex
}

// NewElection returns the election whose directory is path, as NewMutex does. Other processes see the label
// of a candidate's session: see WithLabel.
func NewElection(s *Session, path string) *Election {
	return &Election{lock: NewMutex(s, path)}
}

// Campaign waits until this process leads, and calls lead once. When lead returns or panics, Campaign releases
// the lock, as Unlock does. A panic continues after that. To lead again, call Campaign again after it has returned.
//
// The context of lead ends with ctx, and when the leadership is lost: then its cause is a LostError, and it ends
// before another process leads. lead has to return then. Until it does, and while the session lives, no
// other process leads.
//
// The token is the fencing token of this term: see Hold.Token. Let the store check it before lead
// reads anything there: from then on, the store refuses the writes of earlier leaders.
//
// The error is that of lead. It is also ErrLost if the leadership was lost, and that of Unlock if the release has
// failed. If ctx ends before this process leads, Campaign returns the error of Mutex.Lock, and does not call lead.
//
// Do not call Campaign within lead. With lead's context it is re-entry: the inner lead is called at once. With
// another context, the process waits for itself.
func (e *Election) Campaign(
	ctx context.Context, lead func(ctx context.Context, token int64) error,
) error {
	if e.lock == nil {
		return errors.New("leased: the Election is a zero value: make it with NewElection")
	}
	return campaign(ctx, e.lock.Lock, lead)
}

// campaign is Campaign with any lock.
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

// joined returns both errors in one. If both report the same loss, it is reported once: if lead has returned
// nothing but the loss, joined returns the error of Unlock, which also names the znode. If Unlock has returned
// nothing but the loss, joined returns the error of lead.
func joined(ofLead, ofUnlock error) error {
	var lost *LostError
	sameLoss := errors.As(ofUnlock, &lost) && errors.Is(ofLead, lost)
	leadAddsNothing := ofLead == error(lost)
	unlockAddsNothing := errors.Unwrap(ofUnlock) == error(lost) // Unlock has wrapped it, to name the znode
	switch {
	case sameLoss && leadAddsNothing:
		return ofUnlock
	case sameLoss && unlockAddsNothing:
		return ofLead
	}
	return errors.Join(ofLead, ofUnlock)
}

// Leader returns the label of the process that leads, or "" if none does. It costs a list and a read.
//
// The server that answers may lag behind, and the leadership may end at any moment. So use the answer only
// for display or metrics, or to forward a request to the leader, which may have to refuse it. A process may do the
// task only within Campaign.
func (e *Election) Leader(ctx context.Context) (label string, err error) {
	if e.lock == nil {
		return "", errors.New("leased: the Election is a zero value: make it with NewElection")
	}
	first, err := e.lock.q.participants(ctx, 1)
	if err != nil || len(first) == 0 {
		return "", err
	}
	return first[0].Label, nil
}
