package explore

import (
	"slices"

	"zklock/internal/actor"
	"zklock/internal/wiretap"
)

// deed is a kind of choice.
type deed string

const (
	passes       deed = "pass"         // the pending request passes the gate, and the server answers it
	unlocks      deed = "unlock"       // the client calls Unlock
	losesRequest deed = "lose-request" // the connection breaks before the request reaches the server
	losesReply   deed = "lose-reply"   // the server carries out the request, and the connection breaks before the reply
	crashes      deed = "crash"        // the client crashes, and the server ends its session
	givesUp      deed = "give-up"      // the context that the client passed to Lock ends
	expires      deed = "expire"       // the session ends; the client keeps running, and connects again
)

// choice is one thing that can happen next in an interleaving. Its label is the same each time the
// interleaving is played.
type choice struct {
	client int
	deed   deed
	label  string
	op     string // of the pending request; "": there is none
	reads  bool   // a request that changes nothing at the server, and nothing for other clients
}

func (c choice) isFault() bool { return c.deed != passes && c.deed != unlocks }

// isRequest reports whether the choice decides what happens to a pending request.
func (c choice) isRequest() bool {
	return slices.Contains([]deed{passes, losesRequest, losesReply}, c.deed)
}

// fault names a fault without its client, for example "lose-reply create" or "crash".
func (c choice) fault() string {
	if c.deed == losesRequest || c.deed == losesReply {
		return string(c.deed) + " " + c.op
	}
	return string(c.deed)
}

// independent reports whether two choices have the same result, whichever happens first. Two reads
// by two clients do: neither changes what the other one reads, and each watch belongs to one
// client. This is also true if a request or a reply of the two reads is lost, because the
// connection that breaks belongs to one client.
func independent(a, b choice) bool {
	bothRead := a.reads && b.reads
	return bothRead && a.client != b.client
}

func isRead(op wiretap.Op) bool {
	return slices.Contains([]wiretap.Op{wiretap.Exists, wiretap.GetData, wiretap.GetChildren}, op)
}

// choices lists everything that can happen next. The choices of the client that acted last come
// first, so in the first interleaving no client is interrupted.
func (p *player) choices() (all []choice) {
	turns := []int{}
	if p.last >= 0 {
		turns = append(turns, p.last)
	}
	for i := range p.clients {
		if i != p.last {
			turns = append(turns, i)
		}
	}
	for _, i := range turns {
		all = append(all, p.steps(i)...)
	}
	lastCanGoOn := len(all) > 0 && all[0].client == p.last
	if lastCanGoOn && p.switches == p.Switches { // p.switches never reaches Unbound
		others := func(c choice) bool { return c.client != p.last }
		all = slices.DeleteFunc(all, others)
	}
	canGoOn := len(all) > 0
	if canGoOn && p.faults < p.Faults {
		var faults []choice
		for _, i := range turns {
			faults = append(faults, p.faultsOf(i)...)
		}
		if p.Again && p.faults >= 2 {
			faults = slices.DeleteFunc(faults, func(c choice) bool { return c.fault() != p.lastFault })
		}
		all = append(all, faults...)
	}
	return all
}

// steps lists what a client can do next without a fault.
func (p *player) steps(i int) []choice {
	c := p.clients[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.hasCrashed():
		return nil
	case c.pending != nil:
		return []choice{p.choice(i, passes)}
	case c.hasHold():
		return []choice{p.choice(i, unlocks)}
	}
	return nil
}

// faultsOf lists the faults that can happen to a client now.
func (p *player) faultsOf(i int) (all []choice) {
	c := p.clients[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	isDone := c.isDone() && c.pending == nil
	if c.hasCrashed() || isDone {
		return nil
	}
	if c.pending != nil {
		all = append(all, p.choice(i, losesReply))
	}
	// A read changes nothing at the server, so a lost request and a lost reply have the same result.
	comesToTheSame := c.pending != nil && isRead(c.pending.Op) && !p.Full
	if c.pending != nil && !comesToTheSame {
		all = append(all, p.choice(i, losesRequest))
	}
	all = append(all, p.choice(i, crashes), p.choice(i, expires))
	if c.State() == actor.Waits && !c.gaveUp {
		all = append(all, p.choice(i, givesUp))
	}
	if p.Mild {
		isMild := func(c choice) bool { return c.reads || c.deed == crashes || c.deed == givesUp }
		all = slices.DeleteFunc(all, func(c choice) bool { return !isMild(c) })
	}
	return all
}

// choice returns the choice of a deed for the client with this number. The caller holds the
// client's mutex.
func (p *player) choice(i int, d deed) choice {
	c := p.clients[i]
	ch := choice{client: i, deed: d, label: c.name + " " + string(d)}
	if c.pending != nil {
		ch.op = c.pending.Op.String()
		ch.label += ": " + ch.op + " " + p.story.short(c.pending.Path)
		ch.reads = isRead(c.pending.Op) && ch.isRequest()
	}
	return ch
}

func labels(choices []choice) (all []string) {
	for _, c := range choices {
		all = append(all, c.label)
	}
	return all
}
