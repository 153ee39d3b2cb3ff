package gateway

import (
	"encoding/binary"
	"time"
)

// sealed is what a state of the gateway's own holds.
type sealed struct {
	person  bool // somebody is asked, who may take input_timeout
	legs    int  // rounds that the server has answered
	issued  time.Time
	used    time.Duration // of the call's time, until issued
	expires time.Time
	state   []byte // the server's own, as JSON text; nil where it gave none
}

// The layout: version, flags, legs, issued, used, expires, the server's state.
const (
	sealedLayout = 1
	sealedHead   = 1 + 1 + 4 + 8 + 8 + 8

	flagPerson = 1
	flagState  = 2
)

func (s sealed) text() []byte {
	b := make([]byte, 0, sealedHead+len(s.state))
	flags := byte(0)
	if s.person {
		flags |= flagPerson
	}
	if s.state != nil {
		flags |= flagState
	}
	b = binary.BigEndian.AppendUint32(append(b, sealedLayout, flags), uint32(s.legs))
	b = binary.BigEndian.AppendUint64(b, uint64(s.issued.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(s.used))
	b = binary.BigEndian.AppendUint64(b, uint64(s.expires.UnixNano()))
	return append(b, s.state...)
}

// readSealed reports false for a layout of another version of the gateway.
func readSealed(b []byte) (sealed, bool) {
	if len(b) < sealedHead || b[0] != sealedLayout {
		return sealed{}, false
	}
	s := sealed{
		person: b[1]&flagPerson != 0, legs: int(binary.BigEndian.Uint32(b[2:])),
		issued:  time.Unix(0, int64(binary.BigEndian.Uint64(b[6:]))),
		used:    time.Duration(binary.BigEndian.Uint64(b[14:])),
		expires: time.Unix(0, int64(binary.BigEndian.Uint64(b[22:]))),
	}
	if b[1]&flagState != 0 {
		s.state = b[sealedHead:]
	}
	return s, true
}
