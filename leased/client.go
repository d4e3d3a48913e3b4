package leased

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"
)

// This file is about the client library, go-zookeeper/zk v1.0.4: what it does wrong or
// does not expose, and what leased does about it. You can read the other files without it, if you
// know this: granted, in lease.go, is called when a server has answered a
// handshake, and pingAnswered when it has answered a ping. watchesLost returns a channel that is
// closed when a watch may never fire. isThrottled reports whether an error says that a server is too busy.
//
// In this list, wire is the network connection that our dialer gives to the library, and Printf gets each line of the
// library's log.
//
//  1. The library does not expose the timeout that the servers have granted. wire reads it
//     in the handshake's answer.
//  2. It waits ten times as long for the handshake's answer as for a later one. When
//     four bytes of that answer have arrived, it waits for the rest forever. wire waits
//     for the whole answer, as long as for any other.
//  3. It panics when a reply is shorter than a reply's head, or when a server grants a
//     timeout of 0. wire returns an error instead, and the library connects again.
//  4. When wire tells it that a request could not be written, the library gives
//     the caller two results, and may block forever. So wire reports success, and closes the
//     connection: then the library's reader gives each open request one error.
//  5. Its Close gives up after a few seconds if many requests wait to be sent. Then the library
//     continues to send pings, and the session lives on. So our close calls hangUp, which closes the network
//     connection. If the program itself has called Close of the zk.Conn, the library says only in its log that it
//     has given up: Printf sees that, and closes the session.
//  6. When the program itself calls Close of the zk.Conn, the servers end the session, and the next
//     client acquires the lock: the holder must be notified before. wire sees the request to close,
//     and ends the lease before it passes the request on.
//  7. It looks up the servers' names once. If there is only one server, it rests for a
//     second before it connects again. With our type hosts it looks them up each time, and rests
//     only when each server has been tried twice.
//  8. It says only in its log why there is no connection. lastWords returns that.
//  9. It sends pings, and does not report when, nor that they were answered. wire sees both.
// 10. On a new connection it sets all watches again. If that fails, for example at a
//     server that is too busy, it says so only in its log, and a watch never fires. Printf sees
//     that, and wakes all calls that wait (watchesLost).
// 11. It has no name for the error of a server that is too busy (throttled): see isThrottled.
// 12. When a server has answered that the session has expired, the library leaves that connection
//     open. Our dialer, the method open, closes it.
// 13. If a name has several addresses, the library dials it for one second, in which Go's dialer tries only
//     the first one. dialEach tries each.
// 14. When it sets the watches again, it reads the last zxid while another goroutine may write it: a data race.
//     Then a watch can miss a change of data or children, but not a deletion. leased waits only for deletions.
// 15. If a server answers the handshake of an old session with a new one, instead of saying that the old one has
//     expired, the library takes it for the old one, and no watch fires. wire wakes all calls that wait.
//
// upstream.md has patches for what the library itself should fix.

// client is the layer between the library and the Session.
type client struct {
	dial zk.Dialer
	s    *Session

	mu          sync.Mutex
	wire        *wire // the last one
	closed      bool
	said        string        // the last line of the library's log that gives a reason, see Printf
	lostWatches chan struct{} // see watchesLost

	watches map[string]<-chan zk.Event // see watch, by path
	tidyAt  int                        // how many of them there are when those that have fired are dropped
}

// The client library, and the version whose log texts and errors this package reads.
const (
	library        = "github.com/go-zookeeper/zk"
	libraryVersion = "v1.0.4"
)

// checkLibrary refuses a program that was built with another version of the client library. In the log of another
// version, leased might not find the texts that it looks for. A copy of this version, by a replace in go.mod, is
// accepted: upstream.md says which tests show that it does what leased expects.
func checkLibrary() error {
	build, known := debug.ReadBuildInfo()
	if !known {
		return nil // the linker has left it out
	}
	return checkLibraryIn(build.Deps)
}

func checkLibraryIn(modules []*debug.Module) error {
	for _, module := range modules {
		if module.Path == library && module.Version != libraryVersion {
			return fmt.Errorf("the program is built with %s %s, "+
				"and this version of leased supports only %s %s: go get %s@%s",
				module.Path, module.Version, library, libraryVersion, library, libraryVersion)
		}
	}
	return nil
}

// connect begins to connect to the servers.
func (c *client) connect(servers []string, timeout time.Duration) (*zk.Conn, <-chan zk.Event, error) {
	return zk.Connect(servers, timeout, zk.WithDialer(c.open), zk.WithHostProvider(&hosts{}), zk.WithLogger(c))
}

// checkServers refuses addresses that can never be reached. If another address is good, the library tries a wrong
// one without reporting it. If the wrong one has a chroot, the session would use the good one without the chroot:
// then this program would lock another path than programs that apply the chroot.
func checkServers(servers []string) error {
	for _, server := range servers {
		if why := badAddress(server); why != "" {
			return fmt.Errorf("the address %q: %s", server, why)
		}
	}
	return nil
}

// badAddress returns what is wrong with an address, and what to do, or "" for a good one.
func badAddress(server string) string {
	switch {
	case strings.ContainsFunc(server, unicode.IsSpace):
		return "it has a space: want host:port, such as zk1:2181"
	case strings.Contains(server, ","):
		return "it has a comma: give each server a string of its own"
	case strings.Contains(server, "://"):
		return "it has a scheme: want host:port, such as zk1:2181"
	case strings.Contains(server, "/"):
		return "the Go client library supports no chroot: put it before the paths of the locks, as in /app/locks/orders"
	}
	host, port, err := net.SplitHostPort(server)
	number, notANumber := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return err.Error() + ": want host:port, such as zk1:2181 or [::1]:2181"
	case host == "":
		return "it has no host: want host:port, such as zk1:2181"
	case notANumber != nil || number == 0:
		return "its port is invalid: want a number from 1 to 65535, such as 2181"
	}
	return ""
}

// dialEach returns the dialer that is used without WithDialer. A name may have several addresses, some of them
// dead: each is tried, for as long as the library waits for a dial, which is one second. Go's own dialer
// gives the first address at least two seconds. Each dial begins with the next address: at the last one there may be
// a server that accepts connections and does not serve.
func dialEach(lookUp func(ctx context.Context, host string) ([]string, error)) zk.Dialer {
	var mu sync.Mutex
	dials := map[string]int{} // how often each name was dialed
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		found, err := lookUp(ctx, host)
		if err != nil {
			return nil, err
		}
		slices.Sort(found) // a name server may give them in another order each time
		mu.Lock()
		first := dials[host]
		dials[host]++
		mu.Unlock()
		var failures []error
		for i := range found {
			ip := found[(first+i)%len(found)]
			conn, err := net.DialTimeout(network, net.JoinHostPort(ip, port), timeout)
			if err == nil {
				return conn, nil
			}
			failures = append(failures, err)
		}
		return nil, errors.Join(failures...)
	}
}

// How some lines of the library's log begin.
const (
	connected       = "connected"
	authenticated   = "authenticated: " // the library means the handshake
	resubmitting    = "re-submitting "  // the logins
	closeGivenUp    = "gave up trying to send opClose"
	watchesNotSet   = "Failed to set previous watches"
	handshakeFailed = "authentication failed: " // nobody has tried to log in: the library means the handshake
)

// withoutReason is the end of a line which says that one of the library's two loops, which send and receive, has
// ended because the other one has.
const withoutReason = "terminated: <nil>"

// Printf is called with each line of the library's log, and keeps the last one that says
// why there is no session. A line of a new connection does not, nor does one that says that the library itself has
// closed the connection. So such a line does not replace the line before it, which says why the earlier connection
// has failed.
func (c *client) Printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	c.s.log.say(slog.LevelDebug, "zk: "+line)
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.HasPrefix(line, closeGivenUp) {
		go c.s.close(byConnection) // not here: the library's Close, which calls us, waits
	}
	if strings.HasPrefix(line, watchesNotSet) {
		c.loseWatches()
	}
	isNews := false
	for _, begins := range []string{connected, authenticated, resubmitting} {
		isNews = isNews || strings.HasPrefix(line, begins)
	}
	isFollowUp := strings.HasSuffix(line, withoutReason) || strings.HasSuffix(line, net.ErrClosed.Error())
	isReason := !isNews && !isFollowUp
	if c.said == "" || isReason {
		c.said = strings.TrimPrefix(line, handshakeFailed)
	}
}

// loseWatches wakes all calls that wait for a watch. The caller has c.mu.
func (c *client) loseWatches() {
	close(c.lostWatches)
	c.lostWatches = make(chan struct{})
	clear(c.watches)
}

// watch reads a znode, and returns a channel that is ready when the znode changes or is deleted. All calls that wait
// for one znode share a watch: the library keeps each watch until it fires, although its call may have given up.
// The library closes the channel after the event, so it is ready for all of them.
func (c *client) watch(path string) (data []byte, stat *zk.Stat, gone <-chan zk.Event, err error) {
	gone, current := c.watchOn(path)
	if gone != nil {
		data, stat, err = c.s.conn.Get(path)
		return data, stat, gone, err
	}
	data, stat, gone, err = c.s.conn.GetW(path)
	if err == nil {
		c.share(path, gone, current)
	}
	return data, stat, gone, err
}

// watchOn returns the watch on a znode that has not fired, or nil, and the present channel of watchesLost.
func (c *client) watchOn(path string) (gone <-chan zk.Event, current chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone = c.watches[path]
	if gone != nil && hasFired(gone) {
		delete(c.watches, path)
		gone = nil
	}
	return gone, c.lostWatches
}

// share keeps a watch for other calls, unless watches were lost after current.
func (c *client) share(path string, gone <-chan zk.Event, current chan struct{}) {
	const fewest = 64
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lostWatches != current {
		return
	}
	if len(c.watches) >= max(c.tidyAt, fewest) {
		maps.DeleteFunc(c.watches, func(_ string, gone <-chan zk.Event) bool { return hasFired(gone) })
		c.tidyAt = 2 * len(c.watches)
	}
	c.watches[path] = gone
}

func hasFired(watch <-chan zk.Event) bool {
	select {
	case <-watch:
		return true
	default:
		return false
	}
}

// watchesLost returns a channel that is closed when watches are lost (see 10 and 15).
// Then a call that waits for one of them has to list again.
func (s *Session) watchesLost() <-chan struct{} {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	return s.client.lostWatches
}

// isThrottled reports whether err says that the server is too busy, and has not carried out the request. A
// server does so if throttled_op_wait_time is set there.
func isThrottled(err error) bool { return hasCode(err, throttled) }

func (c *client) lastWords() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said
}

// open is the library's dialer.
func (c *client) open(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := c.dial(network, address, timeout)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, handshakeAdvice(err)) // a server may close the connection as early as this
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, zk.ErrClosing
	}
	if c.wire != nil {
		c.wire.Close() // see 12 above; usually it is closed already
	}
	c.wire = &wire{Conn: conn, in: bufio.NewReader(conn), s: c.s, begun: time.Now()}
	return c.wire, nil
}

// hangUp ends the connection, and every later one.
func (c *client) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.wire != nil {
		c.wire.Close()
	}
}

// hosts gives the library the servers in turn, by name: the dialer looks the names up.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int       // since the last connection that has lasted
	granted time.Time // when a server answered the last handshake; zero: this connection has been judged
}

// rounds is how often the servers are tried, one after the other, before the library
// rests for a second.
const rounds = 2

func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

// Next also tells the library whether to rest before it connects.
func (h *hosts) Next() (server string, restBefore bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	hasLasted := !h.granted.IsZero() && time.Since(h.granted) >= lasting
	if hasLasted {
		h.tried = 0
	}
	h.granted = time.Time{}
	allTried := h.tried >= rounds*len(h.servers)
	if allTried {
		h.tried = 0
	}
	h.tried++
	return server, allTried
}

func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.granted = time.Now()
}

// wire is a connection to a server. It passes all bytes on unchanged.
//
// Each frame begins with four bytes: the length of the rest. After them the handshake's
// answer has the protocol version, the timeout in ms and the session id; a reply has the xid,
// the zxid and the error; a request has the xid and the kind of request.
type wire struct {
	net.Conn
	in       *bufio.Reader // of Conn
	s        *Session
	begun    time.Time // when the connection was made, and the handshake began
	answered bool      // the handshake has been answered
	unread   int       // bytes of the present frame that the library has not read yet

	mu    sync.Mutex
	pings []time.Time // when the pings were sent that are not answered yet
}

const (
	lengthSize = 4

	timeoutAt        = lengthSize + 4 // where the timeout is
	sessionIDAt      = timeoutAt + 4  // where the session id is
	handshakeHead    = sessionIDAt + 8
	longestHandshake = 1024        // a real one has 37 bytes
	handshakeTakes   = time.Second // or less

	replyHead = 4 + 8 + 4

	pingXid = -2

	requestKind  = lengthSize + 4 // where the kind of request is
	closeKind    = -11
	closeRequest = requestKind + 4 // the size of the whole frame
)

// Write sends a request: the library makes one Write for each.
func (w *wire) Write(frame []byte) (int, error) {
	if isCloseRequest(frame) {
		w.s.markClosed(byConnection)
	}
	if isPing(frame) {
		w.mu.Lock()
		w.pings = append(w.pings, time.Now())
		w.mu.Unlock()
	}
	if _, err := w.Conn.Write(frame); err != nil {
		w.Close() // see 4 above
	}
	return len(frame), nil
}

func (w *wire) Close() error {
	w.s.disconnected(w)
	return w.Conn.Close()
}

func isCloseRequest(frame []byte) bool {
	return len(frame) == closeRequest && int32(binary.BigEndian.Uint32(frame[requestKind:])) == closeKind
}

// isPing looks at the xid of a request or a reply. In a handshake the protocol version is
// in that place, which is 0.
func isPing(frame []byte) bool {
	return len(frame) >= lengthSize+4 && int32(binary.BigEndian.Uint32(frame[lengthSize:])) == pingXid
}

func (w *wire) Read(b []byte) (n int, err error) {
	if w.unread == 0 {
		err = w.beginFrame()
	}
	if err == nil {
		n, err = w.in.Read(b[:min(len(b), w.unread)])
		w.unread -= n
	}
	if err != nil {
		w.s.disconnected(w)
	}
	return n, err
}

// beginFrame looks at the head of the next frame.
func (w *wire) beginFrame() error {
	if !w.answered {
		return w.readHandshake()
	}
	head, err := w.in.Peek(lengthSize)
	if err != nil {
		return err
	}
	length := int32(binary.BigEndian.Uint32(head))
	if length < replyHead {
		return fmt.Errorf("%s sent a reply of %d bytes: this is not ZooKeeper", w.RemoteAddr(), length)
	}
	w.unread = lengthSize + int(length)
	return w.lookForPing()
}

// lookForPing notifies the session if the next frame is the answer to a ping. Pings are
// answered in order.
func (w *wire) lookForPing() error {
	head, err := w.in.Peek(lengthSize + 4)
	if err != nil {
		return err
	}
	if !isPing(head) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pings) > 0 {
		w.s.pingAnswered(proof{sent: w.pings[0], answered: time.Now()})
		w.pings = w.pings[1:]
	}
	return nil
}

// handshakeAdvice returns why a server may have closed the connection.
func handshakeAdvice(err error) string {
	hungUp := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if hungUp {
		return " (the server closed it: usually it does not serve, since it has no majority or is starting;" +
			" or its data are older than what this session has seen, there are too many connections from this" +
			" address, see maxClientCnxns, or it wants TLS)"
	}
	return ""
}

// readHandshake waits for the whole answer to the handshake, and tells the session
// what was granted.
func (w *wire) readHandshake() error {
	// This is as long as the library waits for later answers. But a session that asks for a few milliseconds
	// is granted more, and must wait long enough for that answer.
	longestWait := max(w.s.Timeout()*2/3, handshakeTakes)
	w.SetReadDeadline(time.Now().Add(longestWait))
	head, err := w.in.Peek(handshakeHead)
	if err != nil {
		return fmt.Errorf("%s did not answer the handshake: %w%s", w.RemoteAddr(), err, handshakeAdvice(err))
	}
	length := int32(binary.BigEndian.Uint32(head))
	milliseconds := int32(binary.BigEndian.Uint32(head[timeoutAt:]))
	id := int64(binary.BigEndian.Uint64(head[sessionIDAt:]))
	badLength := length < handshakeHead-lengthSize || length > longestHandshake
	badTimeout := id != 0 && milliseconds <= 0
	if badLength || badTimeout {
		return fmt.Errorf("%s answered the handshake with %q: this is not ZooKeeper", w.RemoteAddr(), head)
	}
	whole := lengthSize + int(length)
	if _, err := w.in.Peek(whole); err != nil {
		return fmt.Errorf("%s did not end its answer to the handshake: %w", w.RemoteAddr(), err)
	}
	if w.s.granted(w, w.begun, id, time.Duration(milliseconds)*time.Millisecond) {
		w.s.client.mu.Lock()
		w.s.client.loseWatches() // see 15
		w.s.client.mu.Unlock()
	}
	w.answered = true
	w.unread = whole
	return nil
}
