// Room: supervision.
//
// A small process that stays behind to stop everything when the watched one is
// gone, so that a test that is killed leaves nothing. It waits on a handle of
// that process (pidfd), not on its number. PR_SET_PDEATHSIG would not do: it
// fires when the *thread* that started the child ends, and test runners start
// things from short-lived threads.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisorLook is how often the supervisor looks whether its state directory
// is still there.
const supervisorLook = 2 * time.Second

// supervise leaves a supervisor behind, in place of an earlier one.
func (s state) supervise(watched process, keep bool) error {
	if err := s.recall("supervisor").destroy(); err != nil {
		return err
	}
	_, _, err := s.spawn("supervisor", []string{
		"supervise",
		"--state=" + s.directory,
		"--pid=" + strconv.Itoa(watched.pid),
		"--started=" + watched.started,
		fmt.Sprintf("--keep=%t", keep),
	})
	return err
}

func commandSupervise(arguments []string) error {
	flags := flag.NewFlagSet("supervise", flag.ContinueOnError)
	directory := stateFlag(flags)
	pid := flags.Int("pid", 0, "the process to outlive")
	started := flags.String("started", "", "its start time, field 22 of /proc/PID/stat")
	keep := flags.Bool("keep", false, "leave the state directory")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	s, err := openState(*directory)
	if err != nil {
		return err
	}
	// Whoever started this may be in the foreground of a terminal; an interrupt
	// there must not end the one who cleans up.
	ignoreInterrupts()
	err = waitEnd(process{*pid, *started}, func() bool { return !exists(s.path(marker)) })
	if errors.Is(err, errObsolete) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "control-plane: process %d is gone\n", *pid)
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.down(*keep, !*keep)
}

var errObsolete = errors.New("nothing left to watch for")

// waitEnd returns when the process has ended, or errObsolete once obsolete
// says so.
func waitEnd(watched process, obsolete func() bool) error {
	handle, err := watched.open()
	if err != nil {
		return err
	}
	if handle < 0 {
		return nil
	}
	defer func() { _ = unix.Close(handle) }()
	for {
		polled := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
		count, err := unix.Poll(polled, int(supervisorLook.Milliseconds()))
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("failed to wait for process %d: %w", watched.pid, err)
		case count > 0:
			return nil
		case obsolete != nil && obsolete():
			return errObsolete
		}
	}
}
