package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// metric is the sum of the samples of the process's metrics that begin so: a name, or a name with some of its labels.
func (p *process) metric(ctx context.Context, begin string) (float64, error) {
	text, err := fetch(ctx, "http://"+p.admin+"/metrics")
	if err != nil {
		return 0, fmt.Errorf("asking %s for its metrics: %w", p.name, err)
	}
	return sumOf(text, begin)
}

// sumOf adds the samples of a metric in text.
func sumOf(text []byte, begin string) (sum float64, err error) {
	for line := range bytes.Lines(text) {
		if rest, is := bytes.CutPrefix(line, []byte(begin)); is && len(rest) > 0 && bytes.IndexByte([]byte(" {,"), rest[0]) >= 0 {
			fields := strings.Fields(string(line))
			value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				return 0, fmt.Errorf("the sample %.100q: %w", line, err)
			}
			sum += value
		}
	}
	return sum, nil
}

// fetch is the body of a page.
func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d %.200s", resp.StatusCode, text)
	}
	return text, err
}

// until asks again until there is an error or what is asked for is so.
func until(ctx context.Context, bound time.Duration, what string, is func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for {
		ok, err := is(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s", bound, what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
