package front

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/seal"
	"mcp-gateway/internal/wire"
)

const (
	sessionLife    = 30 * 24 * time.Hour
	sessionPurpose = "session"
	maxToken       = 512 // bytes
	// maxEnded bounds how many ended sessions are remembered: about 4 MB.
	maxEnded = 1 << 16
)

// A session is what a legacy client and the gateway agreed on. It is kept by the client, sealed, so that every replica
// with the same keys serves it and none has to remember it.
type session struct {
	revision     string
	capabilities capabilities
	caller       callerHash
	id           sessionID
	expires      time.Time
}

type sessionID [16]byte

type callerHash [16]byte

func hashCaller(name string) callerHash {
	sum := sha256.Sum256([]byte(name))
	return callerHash(sum[:len(callerHash{})])
}

// capabilities are what the client said that it can do.
type capabilities uint16

const (
	canRoots capabilities = 1 << iota
	canSampling
	canSampleTools
	canSampleContext
	canElicitForm
	canElicitURL
)

func readCapabilities(o wire.Object) capabilities {
	var c capabilities
	if o.Has("roots") {
		c |= canRoots
	}
	if sampling, ok := o.Object("sampling"); ok {
		c |= canSampling
		if sampling.Has("tools") {
			c |= canSampleTools
		}
		if sampling.Has("context") {
			c |= canSampleContext
		}
	}
	if elicitation, ok := o.Object("elicitation"); ok {
		// An empty one is the form mode, which was the only one at first.
		if elicitation.Has("form") || elicitation.Len() == 0 {
			c |= canElicitForm
		}
		if elicitation.Has("url") {
			c |= canElicitURL
		}
	}
	return c
}

// sessionRevisions numbers the revisions in tokens: a place never changes its meaning.
var sessionRevisions = [...]string{mcp.Revision20241105, mcp.Revision20250326, mcp.Revision20250618, mcp.Revision20251125}

const (
	sessionLayout = 1
	sessionSize   = 1 + 1 + 2 + len(callerHash{}) + len(sessionID{}) + 8
)

func newSession(revision string, c capabilities, caller string, now time.Time) session {
	s := session{revision: revision, capabilities: c, caller: hashCaller(caller), expires: now.Add(sessionLife)}
	_, _ = rand.Read(s.id[:]) // it never fails: the program would have ended
	return s
}

// token is the session as the client keeps it.
func (s session) token(ring *seal.Ring) string {
	b := make([]byte, 0, sessionSize)
	b = append(b, sessionLayout, byte(slices.Index(sessionRevisions[:], s.revision)))
	b = binary.BigEndian.AppendUint16(b, uint16(s.capabilities))
	b = append(append(b, s.caller[:]...), s.id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(s.expires.Unix()))
	return ring.Seal(sessionPurpose, b, nil)
}

// openSession gives the session of a token that this gateway sealed for caller, that has not expired.
func openSession(ring *seal.Ring, token, caller string, now time.Time) (session, bool) {
	if len(token) > maxToken {
		return session{}, false
	}
	b, err := ring.Open(sessionPurpose, token, nil)
	if err != nil || len(b) != sessionSize || b[0] != sessionLayout || int(b[1]) >= len(sessionRevisions) {
		return session{}, false
	}
	s := session{revision: sessionRevisions[b[1]], capabilities: capabilities(binary.BigEndian.Uint16(b[2:]))}
	b = b[4:]
	s.caller, b = callerHash(b[:len(s.caller)]), b[len(s.caller):]
	s.id, b = sessionID(b[:len(s.id)]), b[len(s.id):]
	s.expires = time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
	return s, s.caller == hashCaller(caller) && now.Before(s.expires)
}

// sessions are those that their clients have ended, and the streams of the others. Where too many have ended, the one that was
// ended first is forgotten: its token gives nobody more than its caller has anyway.
type sessions struct {
	mu      sync.Mutex // guards all below
	gone    map[sessionID]struct{}
	order   []sessionID // of gone; the first is at next once it is full
	next    int
	most    int
	streams map[sessionID]*listener // of sessions that are not gone
}

func newSessions(most int) *sessions {
	return &sessions{gone: map[sessionID]struct{}{}, streams: map[sessionID]*listener{}, most: most}
}

// end ends a session and its stream.
func (s *sessions) end(id sessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.streams[id]; l != nil {
		close(l.over)
		delete(s.streams, id)
	}
	if _, ok := s.gone[id]; ok {
		return
	}
	s.gone[id] = struct{}{}
	if len(s.order) < s.most {
		s.order = append(s.order, id)
		return
	}
	delete(s.gone, s.order[s.next])
	s.order[s.next] = id
	s.next = (s.next + 1) % len(s.order)
}

func (s *sessions) ended(id sessionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.gone[id]
	return ok
}

// attach makes l the session's stream, which goes on where an older one ends now. It reports false where the session has
// ended.
func (s *sessions) attach(id sessionID, l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.gone[id]; ok {
		return false
	}
	if older := s.streams[id]; older != nil {
		close(older.over)
		l.seen.Store(older.seen.Load())
	}
	s.streams[id] = l
	return true
}

// detach must be called for every attach.
func (s *sessions) detach(id sessionID, l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[id] == l {
		delete(s.streams, id)
	}
}
