package leased

import (
	"context"
	"errors"
)

// Do waits for the lock as Lock does, calls work once, and unlocks as Unlock does when work returns or panics. A panic
// continues after that.
//
// The context of work is hold.Context(ctx): it ends with ctx, and when the lock is lost. work has to return then. Until
// it does, and while the session lives, no other client acquires the lock. Do with this context, or Lock, is re-entry.
// The token for the store is hold.Token(). Do calls Unlock, so work must not.
//
// If ctx ends before the lock is acquired, Do returns the error of Lock, and does not call work. Otherwise the error is
// that of work. It is also ErrLost if the lock was lost, even if work has returned nil, and that of Unlock if the
// release has failed.
//
// So an error does not say that the work was not done. ErrNoAnswer can be the error of Lock, and then work was not
// called, or that of Unlock, and then work has returned. To know it before you retry, let work set a variable at its
// end, or ask the store.
func (m *Mutex) Do(ctx context.Context, work func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, m.Lock, work)
}

// Do is like the Do of a Mutex, for a writer.
func (m *RWMutex) Do(ctx context.Context, work func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, m.Lock, work)
}

// RDo is like the Do of a Mutex, for a reader.
func (m *RWMutex) RDo(ctx context.Context, work func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, m.RLock, work)
}

// Do is like the Do of a Mutex.
func (c *Cohort) Do(ctx context.Context, work func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, c.Lock, work)
}

// do is Do with any lock.
func do(
	ctx context.Context, lock func(context.Context) (*Hold, error), work func(ctx context.Context, hold *Hold) error,
) (err error) {
	if work == nil {
		return errors.New("leased: Do needs a function that works under the lock")
	}
	hold, err := lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, hold.Unlock()) }()
	return work(hold.Context(ctx), hold)
}

// joined returns both errors in one. If both report the same loss, it is reported once: if the work has returned
// nothing but the loss, joined returns the error of Unlock, which also names the znode. If Unlock has returned
// nothing but the loss, joined returns the error of the work.
func joined(ofWork, ofUnlock error) error {
	var lost *LostError
	sameLoss := errors.As(ofUnlock, &lost) && errors.Is(ofWork, lost)
	workAddsNothing := ofWork == error(lost)
	unlockAddsNothing := errors.Unwrap(ofUnlock) == error(lost) // Unlock has wrapped it, to name the znode
	switch {
	case ofUnlock == nil:
		return ofWork
	case ofWork == nil, sameLoss && workAddsNothing:
		return ofUnlock
	case sameLoss && unlockAddsNothing:
		return ofWork
	}
	return errors.Join(ofWork, ofUnlock)
}
