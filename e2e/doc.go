// Package e2e runs the built binary between real peers: clients and servers of the official SDKs, and raw ones of its
// own that show every byte. It imports nothing of the module.
//
// Start reading with pairings_test.go for what a user sees, every_transport_test.go for the servers of others on every
// transport, fidelity_test.go for what may change on the way, faulty_test.go for what may go wrong, and gateway_test.go
// for how a gateway is started. The peers of peers/ are installed from their lock file into the user's cache; the one in
// mcpgo/ is a module of its own and is built by the tests.
package e2e
