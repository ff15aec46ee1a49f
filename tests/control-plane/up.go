// Room: up.
//
// Brings a plane up: settings, ports, keys, then each part in order, then what
// tests expect of the cluster. Processes are left running; a supervisor is
// left behind when the caller wants all to end with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// progress says on stderr what was reached and when.
type progress struct{ begun time.Time }

func (p progress) say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "control-plane: %5.2f s  %s\n", time.Since(p.begun).Seconds(), fmt.Sprintf(format, values...))
}

func commandUp(arguments []string) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	directory := stateFlag(flags)
	list := flags.String("parts", "", "parts to run, or minimal, or all (default: all, or those of the last time)")
	parent := flags.Int("watch-parent", 0, "stop everything when this pid is gone")
	keep := flags.Bool("keep", false, "with --watch-parent: leave the state directory when stopping")
	fsync := flags.Bool("fsync", false, "let etcd wait for the disk")
	positional, err := parse(flags, arguments)
	if err != nil {
		return err
	}
	if len(positional) > 0 {
		return usagef("unexpected argument %q", positional[0])
	}
	report := progress{time.Now()}
	var watched process
	if *parent != 0 {
		// First of all, while the pid still means the caller.
		if watched, err = findProcess(*parent); err != nil {
			return fmt.Errorf("--watch-parent: %w", err)
		}
	}
	s, err := createState(*directory)
	if err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	wanted, err := s.chooseSettings(*list, *fsync)
	if err != nil {
		return err
	}
	if *parent != 0 {
		if err := s.supervise(watched, *keep); err != nil {
			return err
		}
		go exitWith(watched)
	}
	if err := s.up(wanted, report); err != nil {
		// Half a plane is of no use; its logs are.
		return errors.Join(err, s.down(true, false))
	}
	return nil
}

// exitWith ends a half-done "up" when its caller is gone. What it has started
// is stopped by the supervisor, which waits for the lock that this frees.
func exitWith(watched process) {
	if err := waitEnd(watched, nil); err == nil {
		fmt.Fprintln(os.Stderr, "control-plane up: the watched parent is gone")
		os.Exit(exitFailed)
	}
}

// chooseSettings settles what to run: what is asked now, else what was asked
// when the directory was made.
func (s state) chooseSettings(list string, fsync bool) (settings, error) {
	chosen := settings{Version: 1, Parts: partOrder, Fsync: fsync}
	kept, err := s.loadSettings()
	if err == nil {
		chosen.Parts = kept.Parts
		chosen.Fsync = fsync || kept.Fsync
	} else if !errors.Is(err, fs.ErrNotExist) {
		return settings{}, err
	}
	if list != "" {
		if chosen.Parts, err = readParts(list); err != nil {
			return settings{}, err
		}
	}
	return chosen, writeJSON(s.path("settings.json"), chosen)
}

func (s state) up(wanted settings, report progress) error {
	p, reservations, err := s.loadPorts()
	if err != nil {
		return err
	}
	if reservations != nil {
		defer func() { _ = reservations.Close() }()
	}
	if err := s.makeKeys(p.Apiserver); err != nil {
		return err
	}
	report.say("keys made")
	ctx, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	for _, part := range wanted.Parts {
		ended, err := s.launch(part, p, wanted.Fsync)
		if err != nil {
			return err
		}
		// The others do not serve; whether they work shows in what they do.
		if p.of(part) != 0 {
			if err := s.waitServing(part, p, ended); err != nil {
				return err
			}
		}
		report.say("%s started%s", part, atPort(p.of(part)))
		if ended != nil {
			go func() {
				<-ended
				fail(s.failure(part, "has ended"))
			}()
		}
	}
	launched := time.Now()
	if err := s.settle(ctx, wanted.Parts, report); err != nil {
		return err
	}
	// On existing data everything looks settled at once, whether or not the
	// parts live.
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Until(launched.Add(settleTime))):
	}
	report.say("ready: %s", s.kubeconfig())
	return nil
}

func atPort(port int) string {
	if port == 0 {
		return ""
	}
	return fmt.Sprintf(" on port %d", port)
}

// settle waits for what the parts do once they run. The context ends, with the
// reason, when one of them does.
func (s state) settle(ctx context.Context, parts []string, report progress) error {
	clients, err := s.clientset()
	if err != nil {
		return err
	}
	if err := createMarker(ctx, clients); err != nil {
		return err
	}
	managed, simulated := slices.Contains(parts, "controller-manager"), slices.Contains(parts, "kwok")
	if simulated {
		if err := createNode(ctx, clients); err != nil {
			return err
		}
	}
	if managed {
		if err := waitServiceAccount(ctx, clients); err != nil {
			return err
		}
		report.say("default ServiceAccount exists")
	}
	if simulated {
		if err := waitNode(ctx, clients, managed); err != nil {
			return err
		}
		report.say("node %s is ready", nodeName)
	}
	return nil
}
