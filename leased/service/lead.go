package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"zklock/leased"
)

// replica is one process of the service.
type replica struct {
	name     string
	session  *leased.Session
	election *leased.Election
	store    *store

	// Payments, for /metrics.
	inProgress, paid, refused, failed atomic.Int64
}

const (
	idle       = time.Second // until a leader that has no invoice to pay looks again
	afterError = time.Second // until a replica that has failed to lead competes again
)

// compete leads whenever it is this replica's turn, until ctx ends.
func (r *replica) compete(ctx context.Context) {
	for {
		err := r.election.Campaign(ctx, r.lead)
		if ctx.Err() != nil {
			return
		}
		var lost *leased.LostError
		if errors.As(err, &lost) {
			slog.Warn("the lead is lost", "reason", lost.Reason, "error", err)
		} else {
			slog.Error("the campaign has ended", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(afterError):
		}
	}
}

// lead pays invoices until held ends: when this replica no longer leads, or when the process is asked to end.
func (r *replica) lead(held context.Context, token int64) error {
	me := leader{r.name, token}

	// The new leader sends its token before it reads anything. From then on, the store refuses the writes of
	// earlier leaders, so no late write can change what this leader has read.
	if err := r.store.takeOver(held, me); err != nil {
		return err
	}
	slog.Info("leading", "token", me.token)
	for {
		if err := r.payAll(held, me); err != nil {
			return err
		}
		select {
		case <-held.Done():
			return nil // Campaign says why
		case <-time.After(idle):
		}
	}
}

// payAll pays what is unpaid.
func (r *replica) payAll(held context.Context, me leader) error {
	for {
		invoices, err := r.store.unpaid(held)
		if err != nil || len(invoices) == 0 {
			return err
		}
		for _, invoice := range invoices {
			if held.Err() != nil {
				return nil
			}
			if err := r.pay(held, me, invoice); err != nil {
				return err
			}
		}
	}
}

// pay pays one invoice. A payment that has begun is not aborted, neither by SIGTERM nor when
// the lock is lost. Otherwise nobody would know whether it was made. If the lock is lost during the payment,
// the store sees that by the token.
//
// Here the payment is a row in the store. The token does not protect a payment elsewhere, such as at a bank.
// Then send the bank the invoice's number, so that it can refuse a second payment.
func (r *replica) pay(held context.Context, me leader, i invoice) error {
	r.inProgress.Add(1)
	err := r.store.pay(context.WithoutCancel(held), me, i)
	r.inProgress.Add(-1)
	switch {
	case errors.Is(err, errRefused):
		r.refused.Add(1)
	case err != nil:
		r.failed.Add(1)
	default:
		r.paid.Add(1)
		slog.Info("paid", "invoice", i.id, "cents", i.cents, "token", me.token)
	}
	return err
}
