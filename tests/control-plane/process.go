// Room: processes.
//
// Starts processes that outlive this one, remembers them, and finds them again.
// A process is remembered by its pid and its start time, since pids are used
// again: a signal must never reach somebody else's process.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const pollInterval = 20 * time.Millisecond

// process is a running process, told apart from later ones of the same pid.
type process struct {
	pid     int
	started string
}

// condition is what a remembered process is doing.
type condition string

const (
	running condition = "running"
	paused  condition = "paused"
	stopped condition = "stopped"
)

// inspect reads what the kernel says about a pid: its state letter and start
// time. See proc_pid_stat(5); the command's name may hold anything, so fields
// are counted from its closing parenthesis.
func inspect(pid int) (letter, started string, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", fmt.Errorf("no process %d: %w", pid, err)
	}
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return "", "", fmt.Errorf("failed to understand /proc/%d/stat", pid)
	}
	return fields[0], fields[19], nil
}

// findProcess describes a running pid.
func findProcess(pid int) (process, error) {
	letter, started, err := inspect(pid)
	if err != nil {
		return process{}, err
	}
	if letter == "Z" || letter == "X" {
		return process{}, fmt.Errorf("process %d has ended", pid)
	}
	return process{pid, started}, nil
}

// condition says what the process does now. One that has ended but was not
// yet waited for counts as stopped: who reaps orphans may be slow or absent.
func (p process) condition() condition {
	letter, started, err := inspect(p.pid)
	switch {
	case p.pid == 0 || err != nil || started != p.started || letter == "Z" || letter == "X":
		return stopped
	case letter == "T":
		return paused
	default:
		return running
	}
}

// signal sends a signal through a handle that cannot come to mean another
// process between check and use.
func (p process) signal(signal syscall.Signal) error {
	handle, err := p.open()
	if err != nil || handle < 0 {
		return err
	}
	defer func() { _ = unix.Close(handle) }()
	if err := unix.PidfdSendSignal(handle, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("failed to signal process %d: %w", p.pid, err)
	}
	return nil
}

// open returns a handle on the process, -1 when it is gone.
func (p process) open() (int, error) {
	if p.condition() == stopped {
		return -1, nil
	}
	handle, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("failed to open process %d: %w", p.pid, err)
	}
	// The pid may have changed hands before the handle was opened.
	if p.condition() == stopped {
		_ = unix.Close(handle)
		return -1, nil
	}
	return handle, nil
}

// waitGone waits until the process has ended, for at most the given time.
func (p process) waitGone(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for p.condition() != stopped {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pollInterval)
	}
	return true
}

// stop ends the process: politely, and after the grace time by force.
func (p process) stop(grace time.Duration) error {
	if p.condition() == stopped {
		return nil
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A paused process sees the request only once it runs again.
	if err := p.signal(syscall.SIGCONT); err != nil {
		return err
	}
	if p.waitGone(grace) {
		return nil
	}
	return p.destroy()
}

// destroyWaitMax bounds the kernel's part of a kill.
const destroyWaitMax = 10 * time.Second

// destroy ends the process by force.
func (p process) destroy() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.waitGone(destroyWaitMax) {
		return fmt.Errorf("process %d is still there %s after a SIGKILL", p.pid, destroyWaitMax)
	}
	return nil
}

// environment lists what components inherit. Anything else of a test's
// environment (a KUBECONFIG, a proxy) must not change what they do.
var environment = []string{"PATH", "TMPDIR", "LANG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS"}

// spawn starts this binary with the given arguments in a session of its own,
// logging to the state directory, and remembers it under the name. The channel
// is closed when the process ends while this one still runs.
func (s state) spawn(name string, arguments []string) (process, <-chan struct{}, error) {
	self, err := os.Executable()
	if err != nil {
		return process{}, nil, fmt.Errorf("failed to find this program: %w", err)
	}
	output, err := os.OpenFile(s.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return process{}, nil, fmt.Errorf("failed to open the log of %s: %w", name, err)
	}
	defer func() { _ = output.Close() }()
	command := exec.Command(self, arguments...)
	command.Dir = s.directory
	command.Stdout, command.Stderr = output, output
	command.Env = []string{"HOME=" + s.directory}
	for _, key := range environment {
		if value, ok := os.LookupEnv(key); ok {
			command.Env = append(command.Env, key+"="+value)
		}
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return process{}, nil, fmt.Errorf("failed to start %s: %w", name, err)
	}
	ended := make(chan struct{})
	started, findErr := findProcess(command.Process.Pid)
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	if findErr != nil {
		return process{}, ended, fmt.Errorf("%s ended at once: %w", name, findErr)
	}
	return started, ended, s.remember(name, started)
}

func (s state) remember(name string, p process) error {
	return writeFile(s.pid(name), []byte(fmt.Sprintf("%d %s\n", p.pid, p.started)), 0o644)
}

// recall finds the process remembered under a name; it may have ended.
func (s state) recall(name string) process {
	data, err := os.ReadFile(s.pid(name))
	if err != nil {
		return process{}
	}
	fields := strings.Fields(string(data))
	if len(fields) != 2 {
		return process{}
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || pid <= 1 {
		return process{}
	}
	return process{pid, fields[1]}
}

// conditionWaitMax bounds how long the kernel may take to pause a process.
const conditionWaitMax = 5 * time.Second

func (s state) waitCondition(name string, p process, into condition) error {
	deadline := time.Now().Add(conditionWaitMax)
	for p.condition() != into {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is %s, not %s", name, p.condition(), into)
		}
		time.Sleep(pollInterval)
	}
	return nil
}
