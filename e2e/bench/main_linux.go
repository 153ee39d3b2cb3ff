package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// roleEnv makes this program one of the processes that it measures.
const roleEnv = "MCP_GATEWAY_BENCH_ROLE"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Getenv(roleEnv), os.Args[1:])
	stop()
	os.Exit(code)
}

// run is the program with these arguments; ctx ends at the first signal.
func run(ctx context.Context, as string, args []string) int {
	err := dispatch(ctx, as, args)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		// A role ends by a signal as a matter of course.
		if as != "" {
			return 0
		}
		fmt.Fprintln(os.Stderr, "bench: stopped")
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	return 1
}

func dispatch(ctx context.Context, as string, args []string) error {
	if as != "" {
		play, known := map[string]func(context.Context, []string) error{
			"backend": backend, "stdio": stdioBackend, "proxy": proxy, "typed": typed, "page": page, "idle": idle,
		}[as]
		if !known {
			return fmt.Errorf("%s=%s names no role", roleEnv, as)
		}
		return play(ctx, args)
	}
	if len(args) > 0 {
		switch args[0] {
		case "scale":
			return scale(ctx, args[1:])
		case "soak":
			return soak(ctx, args[1:])
		}
	}
	return calls(ctx, args)
}

// ready tells whoever started this process where it serves.
func ready(address string) { fmt.Println("ready", address) }
