package zktest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"math"

	"zklock/internal/zkserver"
)

// FirstAtTheEnd is the third number from the end: a directory counts the children that it has ever
// had in 32 bits with a sign.
const FirstAtTheEnd = math.MaxInt32 - 2

// NewAtTheEnd is New on a server of the test's own, with directories that have three numbers
// left: their next child gets FirstAtTheEnd.
//
// It would take weeks to create two thousand million children. So the server starts with a log
// which says that they were created, as after a restart. Everything after that is its own work.
func NewAtTheEnd(t T) (z *Zoo, dirs []string) {
	t.Helper()
	var log txnLog
	log.begin()
	for n := range 6 {
		dir := fmt.Sprintf("/lock%d", n)
		dirs = append(dirs, dir)
		log.create(dir, 0)
		log.create(dir+"/the-one-before", FirstAtTheEnd)
		log.delete(dir + "/the-one-before")
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	e, err := zkserver.StartEnsembleWith(ctx, 1, zkserver.Config{
		// The server refuses a log without a snapshot as an accident, unless this is set.
		Lines: []string{"snapshot.trust.empty=true"},
		Data:  map[string]string{"version-2/log.1": log.String()},
	})
	if err != nil {
		t.Fatalf("the last numbers need a private server, which finds them in its log: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return NewOn(t, e.Server), dirs
}

// txnLog is the text of a server's log of transactions. All numbers begin with their
// highest byte. The text begins with
//
//	"ZKLG"  version: 4 bytes  database: 8
//
// and then has, for each transaction,
//
//	Adler-32 of the record: 8 bytes  length of the record: 4  the record  'B'
//
// where the record says what was done, and when:
//
//	session: 8  request: 4  zxid: 8  time: 8  kind: 4
//	of a create: path  data  ACL  is it ephemeral: 1  the parent's new count: 4
//	of a delete: path
//
// A text follows its length, in 4 bytes. A list follows the number of its items.
type txnLog struct {
	bytes.Buffer
	zxid uint64 // of the last transaction
}

// The kinds of transactions, by the numbers of the requests that lead to them.
const (
	createTxn = 1
	deleteTxn = 2
)

func (l *txnLog) begin() {
	l.WriteString("ZKLG")
	l.Write(binary.BigEndian.AppendUint32(nil, 2))
	l.Write(binary.BigEndian.AppendUint64(nil, 0))
}

// create notes that a persistent znode was created. A count that is less than the parent's own
// changes nothing.
func (l *txnLog) create(path string, parentsCount int32) {
	r := l.record(createTxn)
	r.text(path)
	r.number(-1) // no data
	r.number(1)  // one ACL: everything is allowed to anybody
	r.number(31)
	r.text("world")
	r.text("anyone")
	r = append(r, 0) // not ephemeral
	r.number(parentsCount)
	l.add(r)
}

func (l *txnLog) delete(path string) {
	r := l.record(deleteTxn)
	r.text(path)
	l.add(r)
}

// record begins the record of the next transaction.
func (l *txnLog) record(kind int32) record {
	l.zxid++
	r := make(record, 8+4, 100) // of session 0, by its request 0
	r = binary.BigEndian.AppendUint64(r, l.zxid)
	r = binary.BigEndian.AppendUint64(r, 0) // in 1970
	r.number(kind)
	return r
}

func (l *txnLog) add(r record) {
	l.Write(binary.BigEndian.AppendUint64(nil, uint64(adler32.Checksum(r))))
	l.Write(binary.BigEndian.AppendUint32(nil, uint32(len(r))))
	l.Write(r)
	l.WriteByte('B')
}

// record is one record of a txnLog.
type record []byte

func (r *record) number(n int32) { *r = binary.BigEndian.AppendUint32(*r, uint32(n)) }

func (r *record) text(s string) {
	r.number(int32(len(s)))
	*r = append(*r, s...)
}
