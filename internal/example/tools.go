package example

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	_ "time/tzdata" // small containers have no time zones of their own

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echoInput struct {
	Message string `json:"message"`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
	return text(in.Message), nil, nil
}

type addInput struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type addOutput struct {
	Sum float64 `json:"sum" jsonschema:"the sum of a and b"`
}

func add(_ context.Context, _ *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, addOutput, error) {
	sum := in.A + in.B
	if math.IsInf(sum, 0) {
		return nil, addOutput{}, errors.New("the sum is too large for a number; give smaller ones")
	}
	return nil, addOutput{Sum: sum}, nil
}

type currentTimeInput struct {
	Timezone string `json:"timezone"`
}

type currentTimeOutput struct {
	Time     string `json:"time" jsonschema:"the date and time, as RFC 3339 with the zone's offset"`
	Timezone string `json:"timezone" jsonschema:"the time zone it is given in"`
	Weekday  string `json:"weekday" jsonschema:"the day of the week, in English"`
}

func currentTime(_ context.Context, _ *mcp.CallToolRequest, in currentTimeInput) (*mcp.CallToolResult, currentTimeOutput, error) {
	zone, err := time.LoadLocation(in.Timezone)
	if err != nil {
		return nil, currentTimeOutput{}, fmt.Errorf("no time zone is called %q; give an IANA name, such as Europe/Berlin or UTC", in.Timezone)
	}
	now := time.Now().In(zone)
	return nil, currentTimeOutput{Time: now.Format(time.RFC3339), Timezone: zone.String(), Weekday: now.Weekday().String()}, nil
}

type waitInput struct {
	Seconds int `json:"seconds"`
}

func wait(ctx context.Context, req *mcp.CallToolRequest, in waitInput) (*mcp.CallToolResult, any, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	token := req.Params.GetProgressToken()
	for waited := 1; waited <= in.Seconds; waited++ {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-tick.C:
		}
		if token == nil {
			continue
		}
		progress := &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(waited), Total: float64(in.Seconds),
			Message: fmt.Sprintf("%d of %d seconds", waited, in.Seconds),
		}
		if err := req.Session.NotifyProgress(ctx, progress); err != nil {
			return nil, nil, fmt.Errorf("reporting progress: %w", err)
		}
	}
	return text(fmt.Sprintf("Waited %d seconds.", in.Seconds)), nil, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
