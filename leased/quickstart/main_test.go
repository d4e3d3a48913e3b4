package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"zklock/leased"
	"zklock/leased/leasedtest"
)

func TestShipAnswers409WhileAnotherProcessHoldsTheLock(t *testing.T) {
	var servers leasedtest.Servers
	other := leasedtest.NewMutex(servers.Open("another process"), "/locks/orders")
	handler := ship(leasedtest.NewMutex(servers.Open("this one"), "/locks/orders"), &store{})
	answer := func() int {
		answer := httptest.NewRecorder()
		handler(answer, httptest.NewRequest(http.MethodPost, "/ship", nil))
		return answer.Code
	}
	hold, err := other.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if code := answer(); code != http.StatusConflict {
		t.Error("while another process holds the lock:", code)
	}
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
	if code := answer(); code != http.StatusOK {
		t.Error("afterwards:", code)
	}
}

func TestPackStoresNothingAfterTheLockIsLost(t *testing.T) {
	var servers leasedtest.Servers
	session := servers.Open("this process")
	orders := &store{}
	err := pack(t.Context(), leasedtest.NewMutex(session, "/locks/orders"), orders, func(context.Context) error {
		session.Lose(leased.ReasonLeaseOver)
		return nil // as work that does not look at its context
	})
	if !errors.Is(err, leased.ErrLost) || orders.state != "" {
		t.Errorf("error %v, stored %q", err, orders.state)
	}
}
