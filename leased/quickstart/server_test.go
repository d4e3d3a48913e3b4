package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/leased"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// No server answers the delete of the znode. The handler does not wait for that, and answers that the order is shipped.
func TestTheHandlerDoesNotWaitUntilUnlockReturns(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	tap := wiretap.New()
	const never = 10 * time.Minute // so that a wait for the timeout outlives the test's deadline
	dial := leased.WithDialer(zktest.Handshake{Tell: never}.Through(tap.Dial))
	session, err := leased.Open(z.Ctx, z.Servers(), zktest.SessionTimeout, dial)
	require.NoError(t, err)
	defer session.Close()
	late := tap.HoldReply(wiretap.Delete, 1)

	answer, orders := httptest.NewRecorder(), &store{}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		handler := ship(leased.NewMutex(session, z.Root+"/orders"), orders)
		handler(answer, httptest.NewRequest(http.MethodPost, "/ship", nil))
	}()
	zktest.AwaitChan(z, "the server to carry out the delete", late.Sprung())
	zktest.AwaitChan(z, "the handler to return", answered)
	require.Equal(t, "shipped", orders.state)
	require.Equal(t, http.StatusOK, answer.Code)
	late.Let()
}
