package config

import "sync/atomic"

// Store holds the configuration in force. Readers take it once per piece of work
// and use that one throughout, so that no decision is made half by the old and
// half by the new.
type Store struct {
	current atomic.Pointer[Configuration]
}

// NewStore gives a Store with a first configuration.
func NewStore(c *Configuration) *Store {
	s := &Store{}
	s.Set(c)
	return s
}

// Load gives the configuration in force.
func (s *Store) Load() *Configuration { return s.current.Load() }

// Set puts another configuration in force.
func (s *Store) Set(c *Configuration) { s.current.Store(c) }
