package redis

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync/atomic"
)

// Identifiers are counted up from a random start, one counter for the process: no two of
// one process are the same, later ones are greater, and two processes meet only if their
// starts, of 2^62, are as close as one of them gets in its life.
var lastID = func() *atomic.Uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	n := new(atomic.Uint64)
	n.Store(binary.BigEndian.Uint64(b[:]) >> 2)
	return n
}()

func newID() uint64 { return lastID.Add(1) }

// idLen is the length of an identifier in text.
const idLen = 11

// digits are those of base 64 in the order of their bytes, so that identifiers in text
// sort like numbers.
const digits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

// idText returns an identifier as it is stored: short, since every hit of a series has
// one, and printable.
func idText(id uint64) string {
	var b [idLen]byte
	for i := idLen - 1; i >= 0; i-- {
		b[i] = digits[id&63]
		id >>= 6
	}
	return string(b[:])
}

// A sending is an argument that tells whether its command was written to a connection
// before, and if so how long ago at most, in microseconds: the client asks for it each
// time. So a script knows for sure, and at no cost, when nobody can have sent it before.
type sending struct {
	again bool
	ago   int64
}

// sending returns the argument of a command that is yet to be sent.
func (c *Cache) sending() *sending { return &sending{ago: micros(c.memory())} }

var never = []byte{'0'}

// MarshalBinary implements [encoding.BinaryMarshaler].
func (s *sending) MarshalBinary() ([]byte, error) {
	if !s.again {
		s.again = true
		return never, nil
	}
	return strconv.AppendInt(nil, s.ago, 10), nil
}
