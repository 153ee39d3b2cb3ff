package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout is shorter than what container runtimes give a health check, so that the reason is still told.
const healthTimeout = 3 * time.Second

// healthcheckCommand is the health check of the image, which has no other program to ask with. It does not read the
// configuration: a gateway that goes on with the one it has is healthy, whatever the file says by now.
func healthcheckCommand() *cobra.Command {
	var admin string
	cmd := &cobra.Command{
		Use:    "healthcheck",
		Short:  "Ask a running gateway whether it is alive",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return healthcheck(admin) },
	}
	cmd.Flags().StringVar(&admin, "admin", "127.0.0.1:9090", "the `ADDRESS` of the gateway's admin listener")
	return cmd
}

// healthcheck asks nobody but address: no proxy is in between, and no redirect is followed.
func healthcheck(address string) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("--admin: %q is no address, write one such as 127.0.0.1:9090", address)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: healthTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("asking whether the gateway is alive: %w; is admin set to %s in its configuration?", err, address)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the gateway says that it is not healthy: %s answered %s", req.URL, resp.Status)
	}
	return nil
}
