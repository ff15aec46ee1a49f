// Room: down.
//
// Stops everything a state directory remembers, clients before servers, and
// removes the directory.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Grace given before force. The API server finishes open requests first.
const (
	graceClient = 3 * time.Second
	graceServer = 5 * time.Second
)

// stopOrder lists what is stopped together, one group after the other.
var stopOrder = [][]string{{"git-server", "kwok", "scheduler", "controller-manager"}, {"apiserver"}, {"etcd"}}

func commandDown(arguments []string) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	directory := stateFlag(flags)
	keep := flags.Bool("keep", false, "leave the state directory")
	now := flags.Bool("now", false, "by force, without grace: a second faster, for data that is thrown away")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	s, unlock, err := openLocked(*directory)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "control-plane: nothing to stop:", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	// The supervisor first: it would do the same work beside us.
	if err := s.recall("supervisor").destroy(); err != nil {
		return err
	}
	return s.down(*keep, *now)
}

// down stops the parts; the caller holds the lock.
func (s state) down(keep, now bool) error {
	begun := time.Now()
	var failed error
	for _, group := range stopOrder {
		failed = errors.Join(failed, s.stopGroup(group, now))
	}
	if failed != nil {
		return failed
	}
	fmt.Fprintf(os.Stderr, "control-plane: stopped in %.2f s\n", time.Since(begun).Seconds())
	if keep {
		return nil
	}
	return s.remove()
}

func (s state) stopGroup(names []string, now bool) error {
	failures := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		grace := graceClient
		if name == "apiserver" || name == "etcd" {
			grace = graceServer
		}
		group.Go(func() {
			if now {
				failures[i] = s.recall(name).destroy()
			} else {
				failures[i] = s.recall(name).stop(grace)
			}
			if failures[i] == nil {
				_ = os.Remove(s.pid(name))
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// remove deletes the directory; its marker goes last, so that an interrupted
// removal can be repeated.
func (s state) remove() error {
	entries, err := os.ReadDir(s.directory)
	if err != nil {
		return fmt.Errorf("failed to remove the state directory: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == marker {
			continue
		}
		if err := os.RemoveAll(s.path(entry.Name())); err != nil {
			return fmt.Errorf("failed to remove the state directory: %w", err)
		}
	}
	if err := os.RemoveAll(s.directory); err != nil {
		return fmt.Errorf("failed to remove the state directory: %w", err)
	}
	return nil
}
