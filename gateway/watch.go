package gateway

import (
	"time"

	"mcp-gateway/gateway/config"
)

// watchInterval is how often the files are looked at. Asking for their bytes needs no notice of any file system, so that a volume
// that is swapped by a symbolic link is as good as any.
const watchInterval = 2 * time.Second

// watch asks for a reload when the files of the configuration have changed and two looks have found them the same, so that no
// half-written one is read. What was tried and failed is not tried again.
func (g *Gateway) watch() {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	loaded := g.snapshot.Load().cfg.Content
	tried, seen := loaded, loaded
	for {
		select {
		case <-tick.C:
		case <-g.life.Done():
			return
		}
		cfg := g.snapshot.Load().cfg
		if cfg.Content != loaded {
			loaded, tried = cfg.Content, cfg.Content
		}
		if !cfg.Watch {
			continue
		}
		now, err := config.Content(cfg.Files)
		if err != nil || now == tried {
			continue // a file that is away for a moment is being replaced
		}
		if now == seen {
			tried = now
			g.RequestReload()
		}
		seen = now
	}
}
