package process

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A look at /proc costs some 20 µs for each process of the machine. The pause after it is several times what it took, so
	// that the end of many servers does not keep a core busy.
	lookShare    = 4
	minLookPause = time.Millisecond
	maxLookPause = 250 * time.Millisecond
)

// A reaper looks at all processes, and reaps those that the gateway has as their orphans' reaper. It never waits for just any
// child, since others of the program wait for theirs.
type reaper struct {
	learn sync.Once

	mu      sync.Mutex // guards these
	groups  map[int]bool
	next    *look // has not begun, so that who asks now may share it
	handles bool  // Go holds a handle of each child that it will wait for

	looking sync.Mutex // held by the look that runs; guards after
	after   time.Time  // no look begins before
}

// A look is one reading of /proc, and what was reaped with it.
type look struct {
	done  chan struct{}
	alive map[int][]int // by group: who is alive in it, its leader aside; after done
}

// theReaper is the process's own, since its children belong to a process.
var theReaper = &reaper{groups: make(map[int]bool)}

func watch(group int)   { theReaper.watch(group) }
func unwatch(group int) { theReaper.unwatch(group) }

// watch begins to reap the orphans of a group, whose leader is a child that Go will wait for: the first one shows whether there
// are handles.
func (r *reaper) watch(group int) {
	r.learn.Do(func() {
		found := handles()[group]
		r.mu.Lock()
		r.handles = found
		r.mu.Unlock()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups[group] = true
}

func (r *reaper) unwatch(group int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, group)
}

// sweep reaps the orphans of running servers: one that starts helpers and forgets them would otherwise fill the process
// table.
func (s *spawner) sweep() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		theReaper.look()
		time.Sleep(time.Second) // a burst of deaths costs one look
	}
}

// members reaps the dead orphans of a watched group and returns who is alive in it, its leader aside. Zombies whose parent is not
// the gateway are not counted: nobody else can reap them.
func members(group int) []int { return theReaper.look().alive[group] }

// look gives a look that began after it was asked for. All who ask before that share it.
func (r *reaper) look() *look {
	r.mu.Lock()
	l := r.next
	mine := l == nil
	if mine {
		l = &look{done: make(chan struct{})}
		r.next = l
	}
	r.mu.Unlock()
	if mine {
		r.run(l)
	}
	<-l.done
	return l
}

func (r *reaper) run(l *look) {
	r.looking.Lock()
	defer r.looking.Unlock()
	if pause := time.Until(r.after); pause > 0 {
		<-time.After(pause)
	}
	r.mu.Lock()
	r.next = nil
	r.mu.Unlock()
	began := time.Now()
	l.alive = r.reap()
	r.after = time.Now().Add(min(max(lookShare*time.Since(began), minLookPause), maxLookPause))
	close(l.done)
}

// reap reads /proc and reaps by what it says. Only one runs at a time, so that no pid seen there is reaped, and used again,
// between.
func (r *reaper) reap() map[int][]int {
	seen := processes()
	self := os.Getpid()
	alive := make(map[int][]int)
	var strays []status
	r.mu.Lock()
	for _, s := range seen {
		leads, owned := r.groups[s.pid], r.groups[s.group]
		switch {
		case leads: // reaped by its Close
		case owned && !s.zombie:
			alive[s.group] = append(alive[s.group], s.pid)
		case owned && s.parent == self:
			// Not reaped means that threads of it still run although its first one has ended.
			if pid, err := syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil); err == nil && pid == 0 {
				alive[s.group] = append(alive[s.group], s.pid)
			}
		case s.zombie && s.parent == self:
			strays = append(strays, s)
		}
	}
	r.mu.Unlock()
	if len(strays) > 0 {
		r.reapStrays(strays)
	}
	return alive
}

// reapStrays reaps the zombies that left a server's group before they became the gateway's. Among its zombies may also be
// children of other code, which waits for them itself: these are in the gateway's own group, or Go holds a handle of theirs
// (a pidfd) from their start to the end of that wait. Where it has no handles, only what is in a session that neither the gateway
// nor the process itself has begun is known not to be such a child.
func (r *reaper) reapStrays(strays []status) {
	held := handles()
	r.mu.Lock()
	known := r.handles
	r.mu.Unlock()
	group := syscall.Getpgrp()
	session, err := unix.Getsid(0)
	if err != nil {
		return
	}
	for _, s := range strays {
		foreign := s.session != session && s.session != s.pid
		if s.group != group && (foreign || known && !held[s.pid]) {
			_, _ = syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil)
		}
	}
}
