// Room: faults.
//
// What fault tests do to single parts, and the list of how they fare. The git
// server counts as a part here.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func ignoreInterrupts() { signal.Ignore(syscall.SIGINT, syscall.SIGHUP) }

// onPart runs an action on the part that the arguments name, under the lock.
func onPart(command string, arguments []string, action func(state, string) error) error {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	directory := stateFlag(flags)
	positional, err := parse(flags, arguments)
	if err != nil {
		return err
	}
	if len(positional) != 1 {
		return usagef("exactly one part is wanted")
	}
	name, ok := readPart(positional[0])
	if positional[0] == "git-server" {
		name, ok = "git-server", true
	}
	if !ok {
		return usagef("unknown part %q", positional[0])
	}
	s, unlock, err := openLocked(*directory)
	if err != nil {
		return err
	}
	defer unlock()
	return action(s, name)
}

func commandKill(arguments []string) error {
	return onPart("kill", arguments, func(s state, name string) error { return s.recall(name).destroy() })
}

func commandPause(arguments []string) error {
	return onPart("pause", arguments, func(s state, name string) error {
		return s.turn(name, syscall.SIGSTOP, paused)
	})
}

func commandResume(arguments []string) error {
	return onPart("resume", arguments, func(s state, name string) error {
		return s.turn(name, syscall.SIGCONT, running)
	})
}

func commandStart(arguments []string) error {
	return onPart("start", arguments, state.startOne)
}

func commandRestart(arguments []string) error {
	return onPart("restart", arguments, func(s state, name string) error {
		if err := s.recall(name).destroy(); err != nil {
			return err
		}
		return s.startOne(name)
	})
}

// turn signals a part and checks that the kernel has acted on it.
func (s state) turn(name string, signal syscall.Signal, into condition) error {
	p := s.recall(name)
	if p.condition() == stopped {
		return fmt.Errorf("%s does not run", name)
	}
	if err := p.signal(signal); err != nil {
		return err
	}
	return s.waitCondition(name, p, into)
}

func (s state) startOne(name string) error {
	if name == "git-server" {
		return s.detachGitServer()
	}
	kept, err := s.loadSettings()
	if err != nil {
		return err
	}
	p, reservations, err := s.loadPorts()
	if err != nil {
		return err
	}
	if reservations != nil {
		_ = reservations.Close()
		return fmt.Errorf("%s has never been up", s.directory)
	}
	ended, err := s.launch(name, p, kept.Fsync)
	if err != nil {
		return err
	}
	return s.waitServing(name, p, ended)
}

func commandStatus(arguments []string) error {
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
	directory := stateFlag(flags)
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	s, err := openState(*directory)
	if err != nil {
		return err
	}
	var p ports
	_ = readJSON(s.path("ports.json"), &p) // absent for a lone git server
	names := append(append([]string{}, partOrder...), "git-server", "supervisor")
	for _, name := range names {
		if !exists(s.pid(name)) {
			continue
		}
		port := p.of(name)
		if name == "git-server" {
			port = s.gitPort()
		}
		remembered := s.recall(name)
		fmt.Fprintf(os.Stdout, "%-18s %8d %6s %s\n", name, remembered.pid, orDash(port), remembered.condition())
	}
	return nil
}

func orDash(port int) string {
	if port == 0 {
		return "-"
	}
	return fmt.Sprint(port)
}
