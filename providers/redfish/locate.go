package redfish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodefence/nodefence/fencing"
	"github.com/nodefence/nodefence/providers"
)

const (
	// maxMembers bounds the systems that are looked at behind one endpoint.
	maxMembers = 32
	// maxPages bounds a collection.
	maxPages = 8
	// maxChassis is how many of a system's chassis are asked.
	maxChassis = 2
	// chassisTime is what the chassis may take: it can only veto, and a good
	// answer of the system must not grow old for it.
	chassisTime = 2 * time.Second
)

// locate finds the machine's ComputerSystem: the configured path, or the only
// member of the collection, or of several the one that is proved to be the
// machine. Names and order mean nothing, they change. A single system, or one at
// a configured path, is given as it is, whatever its identity: the caller judges.
func (d *driver) locate(ctx context.Context, l *link, m providers.Machine) (system, error) {
	path := d.opts.System
	if m.System != "" {
		var err error
		if path, err = systemPath(m.System); err != nil {
			return system{}, problemf(fencing.Misconfigured, "system: %v", err)
		}
	}
	if path != "" {
		return l.system(ctx, path)
	}
	root, err := d.root(ctx, l)
	if err != nil {
		return system{}, err
	}
	if root.systems == "" {
		return system{}, problemf(fencing.NotFound, "GET %s: the service root names no Systems; set `system` to the path of the ComputerSystem", serviceRoot)
	}
	members, err := l.members(ctx, root.systems)
	switch {
	case err != nil:
		return system{}, err
	case len(members) == 0:
		return system{}, problemf(fencing.NotFound, "GET %s: there is no system; the endpoint may still build its inventory", root.systems)
	case len(members) == 1 && members[0] == "":
		return system{}, problemf(fencing.Malformed, "GET %s: its only member is no link to a system; set `system` to the path of the ComputerSystem", root.systems)
	case len(members) == 1:
		return l.system(ctx, members[0])
	}
	return l.choose(ctx, m, members)
}

// members lists the collection of systems. Those that are no link are empty
// strings: they count, because one system of two is not a single system.
func (l *link) members(ctx context.Context, path string) ([]string, error) {
	var all []string
	count := -1
	for range maxPages {
		a, err := l.get(ctx, path)
		if err != nil {
			return nil, err
		}
		c, err := parseCollection(a.Body)
		if err != nil {
			return nil, problemf(fencing.Malformed, "GET %s: %v", path, err)
		}
		all, count = append(all, c.members...), max(count, c.count)
		switch {
		case len(all) > maxMembers:
			return nil, problemf(fencing.Ambiguous, "GET %s: more than %d systems; set `system` to the path of the machine's", path, maxMembers)
		case c.next == "" && count > len(all):
			return nil, problemf(fencing.Malformed, "GET %s: it lists %d systems and says that there are %d", path, len(all), count)
		case c.next == "":
			return all, nil
		}
		path = c.next
	}
	return nil, problemf(fencing.Malformed, "GET %s: the collection has no end", path)
}

// choose examines all of several members. Exactly one must be proved to be the
// machine, and each other one must be known to be another: a member that cannot
// be read now may have the same identity.
func (l *link) choose(ctx context.Context, m providers.Machine, members []string) (system, error) {
	var proved []system
	var others []string
	var unread error
	for i, path := range members {
		if path == "" || slices.Contains(members[:i], path) {
			continue
		}
		s, err := l.system(ctx, path)
		switch {
		case errors.Is(err, errNotSystem):
			others = append(others, path+" (no ComputerSystem)")
			continue
		case err != nil && (ctx.Err() != nil || kindOf(err) == fencing.Unauthorized):
			return system{}, err // the next would fare no better
		case err != nil:
			unread = err
			continue
		}
		match, _ := m.Expected.Match(s.identity)
		if match == fencing.IdentityProved {
			proved = append(proved, s)
		}
		others = append(others, fmt.Sprintf("%s (UUID %q, serial %q: %s)", path, s.identity.UUID, s.identity.Serial, match))
	}
	const remedy = "set `system` to the path of the machine's"
	switch {
	case len(proved) == 1 && unread == nil:
		return proved[0], nil
	case len(proved) > 1:
		return system{}, problemf(fencing.Ambiguous, "%d of %d systems have the expected identity; %s: %s", len(proved), len(members), remedy, strings.Join(others, ", "))
	case unread != nil && len(proved) == 1:
		return system{}, problemf(fencing.Ambiguous, "%s has the expected identity, but another of the %d systems could not be read and may have it too; %s: %v", proved[0].path, len(members), remedy, unread)
	case unread != nil:
		return system{}, unread
	}
	return system{}, problemf(fencing.Ambiguous, "none of %d systems is proved to be the machine; %s, or correct the expected identity: %s", len(members), remedy, strings.Join(others, ", "))
}

// notSystem is errNotSystem with its kind.
type notSystem struct{ *problem }

func (n notSystem) Unwrap() []error { return []error{errNotSystem, n.problem} }

// system reads one ComputerSystem.
func (l *link) system(ctx context.Context, path string) (system, error) {
	a, err := l.get(ctx, path)
	if err != nil {
		return system{}, err
	}
	s, err := parseSystem(path, a.Body)
	if err != nil {
		if p := parseFault("GET "+path, a, l.now()); anyOf(parseMessages(a.Body), notReady) {
			p.kind = fencing.Busy
			return system{}, p // "not ready", with a status of 200
		}
		p := problemf(fencing.Malformed, "GET %s: the answer %s", path, strings.TrimPrefix(err.Error(), "it "))
		if errors.Is(err, errNotSystem) {
			p.text = fmt.Sprintf("GET %s: %v; nothing is concluded from it", path, err)
			return system{}, notSystem{p}
		}
		return system{}, p
	}
	s.askedAt, s.answeredAt, s.etag = a.AskedAt, a.AnsweredAt, a.Header.Get("Etag")
	return s, nil
}

// witness asks the chassis that the system says it is in. They may contradict
// the system, and never confirm it. One that cannot be read says nothing: many
// accounts and devices show none. The note is for the record.
func (d *driver) witness(ctx context.Context, l *link, s system) (conflict, note string) {
	if s.power != fencing.Off && s.power != fencing.On {
		return "", ""
	}
	ctx, cancel := context.WithTimeout(ctx, chassisTime)
	defer cancel()
	for _, path := range s.chassis[:min(len(s.chassis), maxChassis)] {
		a, err := l.get(ctx, path)
		if err != nil {
			note += fmt.Sprintf(" %s not read: %s", path, kindOf(err))
			continue
		}
		c, err := parseChassis(path, a.Body)
		if err != nil {
			note += fmt.Sprintf(" %s not understood", path)
			continue
		}
		note += fmt.Sprintf(" %s PowerState=%q", path, clip(c.word, 20))
		if text := c.disagrees(path, s); text != "" && conflict == "" {
			conflict = text
		}
	}
	return conflict, note
}
