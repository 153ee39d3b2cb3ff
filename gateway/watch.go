package gateway

import (
	"time"

	"mcp-gateway/gateway/config"
)

// watchInterval is how often the files are looked at. Asking for their bytes needs no notice of any file system, so that a volume
// that is swapped by a symbolic link is as good as any.
const watchInterval = 2 * time.Second

// watch asks for a reload when what was read for the last one has changed and two looks have found the same, so that no half-written
// file is read. What has failed is not tried again, until a file is another, or is there at last.
func (g *Gateway) watch() {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var seen config.Reading    // by the last look
	var wanted *config.Reading // the last before the reload that was asked for
	for {
		select {
		case <-tick.C:
		case <-g.life.Done():
			return
		}
		if !g.snapshot.Load().cfg.Watch {
			continue
		}
		last := g.read.Load()
		now := config.Read(last.Files...)
		// A file that is away for a moment is being replaced.
		if now.Same(seen) && !now.Same(*last) && !now.Lacks(*last) && wanted != last {
			wanted = last
			g.RequestReload()
		}
		seen = now
	}
}
