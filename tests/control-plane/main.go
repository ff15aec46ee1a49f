// Room: entry.
//
// Chooses what this process is: a component of the control plane (by argv[0]
// or the first argument), or one of the commands that manage them. Data goes
// to stdout, everything else to stderr.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Exit codes: 0 done, 1 failed, 2 wrongly asked.
const (
	exitFailed = 1
	exitUsage  = 2
)

// commands maps a command's name to what runs it.
var commands = map[string]func(arguments []string) error{
	"up":         commandUp,
	"down":       commandDown,
	"status":     commandStatus,
	"kill":       commandKill,
	"pause":      commandPause,
	"resume":     commandResume,
	"start":      commandStart,
	"restart":    commandRestart,
	"token":      commandToken,
	"git-server": commandGitServer,
	"git-init":   commandGitInit,
	"supervise":  commandSupervise,
}

// usageError is a request that cannot be understood.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func usagef(format string, values ...any) error {
	return usageError{fmt.Sprintf(format, values...)}
}

func main() {
	if run, ok := components[filepath.Base(os.Args[0])]; ok {
		os.Exit(run(os.Args[1:]))
	}
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(exitUsage)
	}
	name, arguments := os.Args[1], os.Args[2:]
	if run, ok := components[name]; ok {
		os.Exit(run(arguments))
	}
	if name == "help" || name == "--help" || name == "-h" {
		fmt.Print(usage)
		return
	}
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "control-plane: unknown command %q\n\n%s", name, usage)
		os.Exit(exitUsage)
	}
	os.Exit(exitCode(name, command(arguments)))
}

// exitCode reports a failure once, here, and turns it into a number.
func exitCode(name string, err error) int {
	var wrong usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "control-plane %s: %v\n(run control-plane alone for usage)\n", name, err)
		return exitUsage
	default:
		fmt.Fprintf(os.Stderr, "control-plane %s: %v\n", name, err)
		return exitFailed
	}
}

// parse reads flags wherever they stand among the positional arguments, since
// "kill apiserver --state DIR" reads better than the reverse, and returns the
// positional ones.
func parse(flags *flag.FlagSet, arguments []string) ([]string, error) {
	flags.SetOutput(os.Stderr)
	var positional []string
	for {
		if err := flags.Parse(arguments); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usageError{err.Error()}
		}
		rest := flags.Args()
		if len(rest) == 0 {
			return positional, nil
		}
		positional = append(positional, rest[0])
		arguments = rest[1:]
	}
}

// stateFlag declares the flag that every managing command has.
func stateFlag(flags *flag.FlagSet) *string {
	return flags.String("state", "", "state directory")
}

func signalContext(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
}
