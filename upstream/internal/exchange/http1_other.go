//go:build !unix

package exchange

import "net"

// watchesIdle says that quiet knows what the server has done to a connection that is kept.
const watchesIdle = false

type idle struct{}

func (*idle) watch(net.Conn) {}
func (*idle) quiet() bool    { return true }
