package model

// Rule says from which answers A concludes that it has a lease, and for how long.
type Rule struct {
	name     string
	requests []request // A counts on the answers to these, in this order

	lease percent // counts from the sending of the first request

	// The space before a request counts from the sending of the one before it, which need not be answered.
	// Otherwise it counts from the answer.
	fromSending bool
}

// request is one request that a rule counts on.
type request struct {
	kind  kind
	space percent // the least time after the one before it
}

// kind is a kind of request.
type kind uint8

const (
	none       kind = iota
	ping            // A's server answers it alone, as it answers a read
	sync            // the leader answers it alone
	handshake       // of an old session: the leader hears of A by it, and answers it alone
	write           // a majority has to agree before it is answered
	newSession      // a majority has to agree, and the leader hears of A by it
)

func (k kind) String() string {
	return [...]string{"nothing", "ping", "sync", "handshake", "write", "new session"}[k]
}

// percent of the timeout. The client does not know how long a tick is. If the timeout is
// five ticks, a tenth of it is half a tick.
type percent int

const (
	halfTick  percent = 10
	wholeTick percent = 20
)
