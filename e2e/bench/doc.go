// Command bench measures what the gateway costs beside other forwarders, on this machine and in one run:
//
//	go run ./e2e/bench       # calls of every kind, as ratios to a ReverseProxy
//	go run ./e2e/bench scale # many upstreams, tools, waiting calls and listeners, each against its target
//	go run ./e2e/bench soak  # ten minutes of mixed traffic with failures and reloads; -for 1h for longer
//
// Each has flags, which -h lists. A soak fails where an answer is wrong, or where the gateway has not given back in the end what
// it took.
//
// It builds the gateway as it ships and starts everything that it measures as a process of its own, on loopback. It needs
// Linux, which says what each process has used.
package main
