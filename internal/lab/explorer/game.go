package explorer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"zklock/internal/explore"
	"zklock/internal/lang"
)

// A Game has all interleavings of a lock, for a page on which a reader plays the network. It is a
// graph: points at which the same can be chosen, with the same results, are one point. Each value
// is in a table once, and is referred to by its number. The same interleavings give the same Game,
// in whichever order they were played.
type Game struct {
	Clients int `json:"clients"`
	Faults  int `json:"faults"`
	Orders  int `json:"orders"` // as the explorer counts: it plays some orders of two reads only once
	Wrong   int `json:"wrong"`

	Choices []json.RawMessage `json:"choices"` // client, deed, operation, znode
	// Of a client: its state, the operation and the znode of its request, whether it sets a watch, gave up,
	// its session has expired, and what it watches.
	Stands []json.RawMessage `json:"stands"`
	Znodes []json.RawMessage `json:"znodes"` // names and owners
	// What has happened since a choice: client, kind, operation, znode; and the error, the number of names,
	// whether it was lost, unless all are zero.
	Cames  []json.RawMessage `json:"cames"`
	States []json.RawMessage `json:"states"` // the stand of each client, and the znodes
	Ends   []json.RawMessage `json:"ends"`   // the invariants that are broken, and sentences
	Points [][]int           `json:"points"` // state, end or -1; for each choice: it, what came, the next point
}

// A node is a point of the tree of all interleavings.
type node struct {
	explore.Point
	parent int // -1: it is the root
	by     string
	next   map[string]int // by the label of a choice
	end    *explore.Run   // that ends here; nil: none does
}

// Grow makes a Game of all runs of an exploration, which have points.
func Grow(r explore.Result, s explore.Settings) (*Game, error) {
	nodes, err := grow(r.Runs)
	if err != nil {
		return nil, err
	}
	m := &merger{nodes: nodes, known: map[string]*merged{}, of: map[int]*merged{}}
	root := m.merge(0)
	return number(root, &Game{Clients: s.Clients, Faults: s.Faults, Orders: r.Orders, Wrong: r.Wrong}), nil
}

// A move is a choice at a point of a game.
type move struct {
	deed, op string
	to       int
}

func (m move) isFault() bool { return m.deed != "pass" && m.deed != "unlock" }

// fault names a fault as an explore.Run does.
func (m move) fault() string {
	if strings.HasPrefix(m.deed, "lose") {
		return m.deed + " " + m.op
	}
	return m.deed
}

func (g *Game) moves(point int) (all []move) {
	for at := g.Points[point][2:]; len(at) > 0; at = at[3:] {
		var client int
		m := move{to: at[2]}
		read(g.Choices[at[0]], &client, &m.deed, &m.op)
		all = append(all, m)
	}
	return all
}

// wrong returns the invariants that are broken at the end of an interleaving.
func (g *Game) wrong(point int) (invariants []string) {
	if end := g.Points[point][1]; end >= 0 {
		read(g.Ends[end], &invariants)
	}
	return invariants
}

// read reads the first values of a JSON array.
func read(array json.RawMessage, into ...any) {
	var values []json.RawMessage
	must(json.Unmarshal(array, &values))
	for i, to := range into {
		must(json.Unmarshal(values[i], to))
	}
}

// kinds returns the ways in which the interleavings are wrong.
func (g *Game) kinds() map[explore.Kind]bool {
	known := make([]map[explore.Kind]bool, len(g.Points))
	var from func(point int) map[explore.Kind]bool
	from = func(point int) map[explore.Kind]bool {
		if known[point] != nil {
			return known[point]
		}
		all := map[explore.Kind]bool{}
		for _, invariant := range g.wrong(point) {
			all[explore.Kind{Invariant: invariant}] = true
		}
		for _, m := range g.moves(point) {
			for k := range from(m.to) {
				if m.isFault() {
					k.Faults = strings.TrimSuffix(m.fault()+", "+k.Faults, ", ")
				}
				all[k] = true
			}
		}
		known[point] = all
		return all
	}
	return from(0)
}

// grow makes the tree. A run has no points for the beginning that it was given, because another run
// has them.
func grow(runs []explore.Run) (nodes []*node, err error) {
	begin := func(r explore.Run) int { return len(r.Moments) + 1 - len(r.Points) }
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b explore.Run) int { return begin(a) - begin(b) })
	add := func(n *node) int {
		n.next = map[string]int{}
		nodes = append(nodes, n)
		return len(nodes) - 1
	}
	for _, r := range runs {
		first := begin(r)
		if first == 0 {
			add(&node{Point: r.Points[0], parent: -1})
		}
		at := 0
		for i, m := range r.Moments {
			label := m.Choices[m.Taken]
			to, known := nodes[at].next[label]
			if !known && i+1 < first {
				return nil, fmt.Errorf("no run has the beginning of this one: %v", r.Moments[:i+1])
			}
			if !known {
				to = add(&node{Point: r.Points[i+1-first], parent: at, by: label})
				nodes[at].next[label] = to
			}
			at = to
		}
		if !r.Covered {
			nodes[at].end = &r
		}
	}
	return nodes, nil
}

// A merged is a point of the graph.
type merged struct {
	state, end string
	edges      []edge
}

type edge struct {
	choice, came string
	to           *merged
}

type merger struct {
	nodes []*node
	known map[string]*merged
	of    map[int]*merged
}

// merge returns the point of the graph for a node. Two nodes are the same point if all that can
// follow is the same. An equal state is not enough: a client remembers what it has read.
func (m *merger) merge(i int) *merged {
	if done := m.of[i]; done != nil {
		return done
	}
	n := m.nodes[i]
	p := &merged{state: stateOf(n.Point), end: endOf(n.end)}
	for label, to := range n.next {
		p.edges = append(p.edges, edge{choiceOf(label), cameOf(m.nodes[to].Came), m.merge(to)})
	}
	for _, label := range n.Asleep { // the other order of two reads was played
		if n.end != nil {
			break
		}
		if to := m.after(i, label); to >= 0 {
			p.edges = append(p.edges, edge{choiceOf(label), cameOf(m.first(i, label).Came), m.merge(to)})
		}
	}
	slices.SortFunc(p.edges, func(a, b edge) int { return strings.Compare(a.choice, b.choice) })
	key := p.state + p.end
	for _, e := range p.edges {
		key += fmt.Sprintf("%s %s %p", e.choice, e.came, e.to)
	}
	if same := m.known[key]; same != nil {
		p = same
	}
	m.known[key], m.of[i] = p, p
	return p
}

// after returns the node to which a choice leads, or -1. A choice that is asleep leads to where it
// has led, when it was taken first.
func (m *merger) after(i int, label string) int {
	if i < 0 {
		return -1
	}
	n := m.nodes[i]
	if to, known := n.next[label]; known {
		return to
	}
	if !slices.Contains(n.Asleep, label) {
		return -1
	}
	return m.after(m.after(n.parent, label), n.by)
}

// first returns the node to which a choice that is asleep has led, when it was taken first.
func (m *merger) first(i int, label string) *node {
	for {
		n := m.nodes[i]
		if to, known := n.next[label]; known {
			return m.nodes[to]
		}
		i = n.parent
	}
}

// number gives the points of a graph their numbers, from the root on, and each value a place in its
// table.
func number(root *merged, g *Game) *Game {
	choices, cames, ends := table{list: &g.Choices}, table{list: &g.Cames}, table{list: &g.Ends}
	stands, znodes, states := table{list: &g.Stands}, table{list: &g.Znodes}, table{list: &g.States}
	numbers := map[*merged]int{root: 0}
	for queue := []*merged{root}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		var parts []json.RawMessage // the stand of each client, and the znodes
		must(json.Unmarshal([]byte(p.state), &parts))
		var state []int
		for _, stand := range parts[:len(parts)-1] {
			state = append(state, stands.of(string(stand)))
		}
		state = append(state, znodes.of(string(parts[len(parts)-1])))
		point := []int{states.of(written(state)), -1}
		if p.end != "" {
			point[1] = ends.of(p.end)
		}
		for _, e := range p.edges {
			to, known := numbers[e.to]
			if !known {
				to = len(numbers)
				numbers[e.to] = to
				queue = append(queue, e.to)
			}
			point = append(point, choices.of(e.choice), cames.of(e.came), to)
		}
		g.Points = append(g.Points, point)
	}
	return g
}

// A table has each value once. Its values are JSON.
type table struct {
	list  *[]json.RawMessage
	known map[string]int
}

func (t *table) of(value string) int {
	i, known := t.known[value]
	if !known {
		if t.known == nil {
			t.known = map[string]int{}
		}
		i = len(t.known)
		t.known[value] = i
		*t.list = append(*t.list, json.RawMessage(value))
	}
	return i
}

// label matches the label of a choice, such as "A lose-reply: create /lock/lock-".
var label = regexp.MustCompile(`^(\w) (\S+?)(?:: (\S+) (.*))?$`)

func choiceOf(text string) string {
	m := label.FindStringSubmatch(text)
	return written([]any{int(m[1][0] - 'A'), m[2], m[3], name(m[4])})
}

func stateOf(p explore.Point) string {
	var state []any
	for _, c := range p.Clients {
		watches := []string{}
		for _, path := range c.Watches {
			watches = append(watches, name(path))
		}
		state = append(state, []any{c.State, c.Op, name(c.On), bit(c.Sets), bit(c.GaveUp), bit(c.Expired), watches})
	}
	znodes := []any{}
	for _, z := range p.Znodes {
		znodes = append(znodes, []any{name(z.Path), z.Owner})
	}
	return written(append(state, znodes))
}

func cameOf(events []explore.Event) string {
	came := []any{}
	for _, e := range events {
		switch {
		case e.State != "":
			came = append(came, []any{e.Client, "state", e.State})
		case e.Err != 0 || e.Names != 0 || e.Lost:
			came = append(came, []any{e.Client, e.Kind.String(), e.Op, name(e.On), e.Err, e.Names, bit(e.Lost)})
		default:
			came = append(came, []any{e.Client, e.Kind.String(), e.Op, name(e.On)})
		}
	}
	return written(came)
}

func endOf(r *explore.Run) string {
	if r == nil {
		return ""
	}
	wrong, says := slices.Clone(r.Wrong), slices.Clone(r.Ends)
	if wrong == nil {
		wrong = []string{}
	}
	if says == nil {
		says = []lang.Text{}
	}
	return written([]any{wrong, says})
}

// name shortens a path: "." is the lock's directory.
func name(path string) string {
	if path == "/lock" {
		return "."
	}
	return strings.TrimPrefix(path, "/lock/")
}

func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

func written(value any) string {
	text, err := json.Marshal(value)
	must(err)
	return string(text)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
