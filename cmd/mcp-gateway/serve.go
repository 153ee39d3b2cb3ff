package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway"
	"mcp-gateway/gateway/config"
)

type serveFlags struct {
	config, listen, logFormat, logLevel string
}

func serveCommand() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve [-c FILE]",
		Short: "Serve the configured MCP servers at one URL",
		Long: "Serve the configured MCP servers at one URL. Without a configuration it serves a small example server, to try\n" +
			"a client on.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, flags) },
	}
	cmd.Flags().StringVarP(&flags.config, "config", "c", "", "the configuration `FILE`")
	cmd.Flags().StringVar(&flags.listen, "listen", "", "the `ADDRESS` to listen on, in place of the configuration's")
	cmd.Flags().StringVar(&flags.logFormat, "log-format", "text", "text or json")
	cmd.Flags().StringVar(&flags.logLevel, "log-level", "", "debug, info, warn or error, in place of the configuration's")
	return cmd
}

const (
	// heapFloor is what a serving process is taken to have in use, in bytes: with a heap of the 3 MB that there are, garbage would be
	// collected dozens of times a second, at 7 % of a small call's cost.
	heapFloor = 20 << 20
	// gcPercent is GOGC where the environment sets none: above heapFloor memory counts for more than what it costs to collect garbage.
	gcPercent = 40
)

// paceGC paces the collection of garbage by both, for as long as its result is kept.
func paceGC() (floor []byte) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return make([]byte, heapFloor) // never written to, so that it takes no memory
}

func serve(cmd *cobra.Command, flags serveFlags) error {
	defer runtime.KeepAlive(paceGC())
	// Both end the process by default: a reload that comes early, and a reader of the log that has gone, which would leave
	// the children behind.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGPIPE)
	var level *slog.Level
	if flags.logLevel != "" {
		level = new(slog.LevelInfo)
		if err := level.UnmarshalText([]byte(flags.logLevel)); err != nil {
			return fmt.Errorf("--log-level: %q is no level; use debug, info, warn or error", flags.logLevel)
		}
	}
	if flags.logFormat != "text" && flags.logFormat != "json" {
		return fmt.Errorf("--log-format: %q is no format; use text or json", flags.logFormat)
	}
	cfg, err := loadConfig(cmd.ErrOrStderr(), flags)
	if err != nil {
		return err
	}
	ln, err := listen(cfg.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	var admin net.Listener
	if cfg.Admin != "" {
		if admin, err = listen(cfg.Admin); err != nil {
			return fmt.Errorf("admin: %w", err)
		}
		defer admin.Close()
	}

	var reread func() (*config.Config, []config.Problem, error)
	if flags.config != "" {
		reread = func() (*config.Config, []config.Problem, error) {
			// What came out of a pipe at the start does not come out of it again.
			if info, err := os.Stat(flags.config); err == nil && !info.Mode().IsRegular() {
				return nil, nil, fmt.Errorf("%s is no regular file, so it cannot be read again: restart the gateway instead", flags.config)
			}
			return config.Load(flags.config, config.Override{Listen: flags.listen})
		}
	}
	gw, err := gateway.New(cfg, gateway.Options{
		Load:   reread,
		Admin:  admin,
		Banner: banner("http://" + displayHost(ln.Addr()) + cfg.Path),
		Log:    cmd.ErrOrStderr(), LogJSON: flags.logFormat == "json", LogLevel: level, Status: cmd.OutOrStdout(),
	})
	if err != nil {
		return fmt.Errorf("starting the gateway: %w", err)
	}
	// What libraries print by themselves, net/http bytes of a server among it, is redacted like everything else.
	slog.SetDefault(gw.Log())
	ctx, cut, stop := watchSignals(cmd.Context(), signals, gw.RequestReload)
	defer stop()
	if err := gw.Run(ctx, ln, cut); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	return nil
}

func loadConfig(w io.Writer, flags serveFlags) (*config.Config, error) {
	var (
		cfg      *config.Config
		warnings []config.Problem
		err      error
	)
	override := config.Override{Listen: flags.listen}
	if flags.config == "" {
		cfg, warnings, err = quickstart(override)
	} else {
		cfg, warnings, err = config.Load(flags.config, override)
	}
	printProblems(w, warnings, err)
	if err != nil {
		return nil, errReported
	}
	return cfg, nil
}

// quickstart is the configuration for whoever has none: this program again, as an example server.
func quickstart(override config.Override) (*config.Config, []config.Problem, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the program itself, to start its example server: %w", err)
	}
	text, err := json.Marshal(map[string]any{
		"upstreams": map[string]any{"example": map[string]any{"command": self, "args": []string{"example"}}},
	})
	if err != nil {
		return nil, nil, err
	}
	return config.Parse("quickstart", text, override)
}

func listen(address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listening on %s: the port is in use; stop the program that has it, or choose another with --listen", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return ln, nil
}

// displayHost is the address as a client on this machine can use it.
func displayHost(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func banner(url string) string {
	return fmt.Sprintf(`mcp-gateway %s serves MCP at %s

Add it to a client:

  {"mcpServers": {"gateway": {"type": "http", "url": "%s"}}}

`, gateway.Version, url, url)
}

// watchSignals gives a context that ends with the first SIGTERM or SIGINT, and a channel that is closed by the second.
// SIGHUP calls hangup; every other signal that signals takes is let pass.
func watchSignals(parent context.Context, signals chan os.Signal, hangup func()) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(parent)
	cut := make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for stops := 0; ; {
			select {
			case s := <-signals:
				switch s {
				case syscall.SIGHUP:
					hangup()
				case syscall.SIGTERM, syscall.SIGINT:
					if stops++; stops == 1 {
						cancel()
					} else if stops == 2 {
						close(cut)
					}
				}
			case <-quit:
				return
			}
		}
	}()
	return ctx, cut, func() {
		signal.Stop(signals)
		close(quit)
		<-ended
		cancel()
	}
}
