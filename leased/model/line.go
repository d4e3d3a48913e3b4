package model

// message is one message that is under way.
type message uint16

const (
	nothing  message = 0
	counted  message = 1 // a request that the rule counts on; on the way down, its answer
	other    message = 2 // from A to its server: any other request
	report   message = 2 // from a server up: I have heard of A
	question message = 2 // from a server down: of whom have you heard?
)

// line holds the messages that are under way in one direction between two processes, the oldest first. It is
// one TCP connection: no message overtakes another. A message takes two bits.
type line uint16

const (
	bits        = 2
	longestLine = 16 / bits
)

func (l line) first() message { return message(l & (1<<bits - 1)) }

func (l line) withoutFirst() line { return l >> bits }

// with adds a message behind all others.
//
// Two successive questions count as one, and so do two reports, and two requests that the rule does not count
// on. This leaves out no bad order: the second one can only make the leader hear more of A.
func (l line) with(m message) line {
	length, last := l.end()
	if m == last && m != counted {
		return l
	}
	if length == longestLine {
		panic("model: a line is full: line needs more bits")
	}
	return l | line(m)<<(bits*length)
}

// end returns how many messages there are, and the last of them.
func (l line) end() (length int, last message) {
	for ; l != 0; l = l.withoutFirst() {
		length++
		last = l.first()
	}
	return length, last
}

// count returns how many of the messages are counted requests, or answers to them.
func (l line) count() (n uint8) {
	for ; l != 0; l = l.withoutFirst() {
		if l.first() == counted {
			n++
		}
	}
	return n
}
