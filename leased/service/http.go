package main

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-zookeeper/zk"

	"zklock/leased"
)

func (r *replica) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /invoices", r.enter)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {}) // 200: the process runs
	mux.HandleFunc("GET /readyz", r.ready)
	mux.HandleFunc("GET /metrics", r.metrics)
	return mux
}

// enter accepts an invoice.
func (r *replica) enter(w http.ResponseWriter, request *http.Request) {
	cents, err := strconv.ParseInt(request.FormValue("cents"), 10, 64)
	if err != nil || cents <= 0 {
		http.Error(w, "want cents=, a whole number above 0", http.StatusBadRequest)
		return
	}
	id, err := r.store.enter(request.Context(), cents)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "invoice %d\n", id)
}

// ready answers 200 if this replica can serve, and lead when it is its turn.
func (r *replica) ready(w http.ResponseWriter, request *http.Request) {
	if state := r.session.Conn().State(); state != zk.StateHasSession {
		http.Error(w, "no session with ZooKeeper: "+state.String(), http.StatusServiceUnavailable)
		return
	}
	leader, err := r.store.lastLeader(request.Context())
	if err != nil {
		http.Error(w, "the store: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	server := r.session.Conn().Server()
	fmt.Fprintf(w, "this is %s, the last to lead is %s, the ZooKeeper server is %s\n", r.name, leader, server)
}

// metrics answers in the text format of Prometheus.
func (r *replica) metrics(w http.ResponseWriter, _ *http.Request) {
	s := r.session.Stats()
	connected := 0
	if s.Connected {
		connected = 1
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprintf(w, `# HELP payments_total Payments, by what became of them.
# TYPE payments_total counter
payments_total{result="paid"} %d
payments_total{result="refused"} %d
payments_total{result="failed"} %d
# HELP payments_in_progress Payments that have begun and not ended.
# TYPE payments_in_progress gauge
payments_in_progress %d
# HELP zklock_holds Locks that are held: 1 in the replica that leads.
# TYPE zklock_holds gauge
zklock_holds %d
# HELP zklock_waiting Calls that wait for a lock: 1 in each other replica.
# TYPE zklock_waiting gauge
zklock_waiting %d
# HELP zklock_taken_total Locks that were taken.
# TYPE zklock_taken_total counter
zklock_taken_total %d
# HELP zklock_longest_hold_seconds How long the oldest lock has been held.
# TYPE zklock_longest_hold_seconds gauge
zklock_longest_hold_seconds %g
# HELP zklock_longest_wait_seconds How long the oldest call that waits has waited.
# TYPE zklock_longest_wait_seconds gauge
zklock_longest_wait_seconds %g
# HELP zklock_connected 1 with a connection to ZooKeeper, and 0 without.
# TYPE zklock_connected gauge
zklock_connected %d
# HELP zklock_lease_left_seconds How long the session can be relied on. Without a lock it goes to 0.
# TYPE zklock_lease_left_seconds gauge
zklock_lease_left_seconds %g
# HELP zklock_lost_total Locks that were lost, by the reason.
# TYPE zklock_lost_total counter
`,
		r.paid.Load(), r.refused.Load(), r.failed.Load(), r.inProgress.Load(),
		s.Holds, s.Waiting, s.Taken, s.LongestHold.Seconds(), s.Longest.Seconds(), connected, s.LeaseLeft.Seconds())
	// While the session is open, a hold with a lease is lost for one of these two reasons.
	for _, reason := range []leased.Reason{leased.ReasonLeaseOver, leased.ReasonExpired} {
		fmt.Fprintf(w, "zklock_lost_total{reason=%q} %d\n", reason, s.Lost[reason])
	}
}
