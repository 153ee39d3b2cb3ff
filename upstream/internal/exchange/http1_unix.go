//go:build unix

package exchange

import (
	"net"
	"syscall"
)

// watchesIdle says that quiet knows what the server has done to a connection that is kept.
const watchesIdle = true

// An idle looks at a connection between two exchanges.
type idle struct {
	raw  syscall.RawConn // nil for what is no socket, which is taken for quiet
	look func(fd uintptr) bool
	open bool
	room [1]byte
}

func (i *idle) watch(c net.Conn) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	i.raw, i.look = raw, func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), i.room[:])
		i.open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}
}

// quiet reports whether the server has left the connection open and said nothing on it. A request on one that it has closed would
// be lost without a proof that it did not run.
func (i *idle) quiet() bool {
	if i.raw == nil {
		return true
	}
	return i.raw.Read(i.look) == nil && i.open
}
