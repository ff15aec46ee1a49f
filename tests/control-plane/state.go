// Room: state.
//
// A state directory holds all there is to one control plane (or one git
// server): data, keys, ports, logs, pids. This room names its paths, keeps its
// settings, and guards against two commands changing it at once and against
// removing a directory that is not ours.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// marker is the file whose presence says that a directory is a state
// directory, so that "down" may remove it.
const marker = "control-plane-state"

// lockWaitMax bounds waiting for another command on the same directory; it is
// above all deadlines of one "up" together.
const lockWaitMax = 150 * time.Second

type state struct{ directory string }

// settings is what "up" was asked, kept so that a restart does the same.
type settings struct {
	Version int      `json:"version"`
	Parts   []string `json:"parts"`
	Fsync   bool     `json:"fsync"`
}

func (s state) path(elements ...string) string {
	return filepath.Join(append([]string{s.directory}, elements...)...)
}

func (s state) kubeconfig() string       { return s.path("kubeconfig") }
func (s state) pid(name string) string   { return s.path("pids", name) }
func (s state) log(name string) string   { return s.path("logs", name+".log") }
func (s state) key(name string) string   { return s.path("keys", name+".key") }
func (s state) cert(name string) string  { return s.path("keys", name+".crt") }
func (s state) login(name string) string { return s.path("keys", name+".kubeconfig") }

// createState opens a state directory, making it if it is missing or empty.
func createState(directory string) (state, error) {
	absolute, err := absoluteState(directory)
	if err != nil {
		return state{}, err
	}
	s := state{absolute}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return state{}, fmt.Errorf("failed to make the state directory: %w", err)
	}
	if _, err := os.Stat(s.path(marker)); errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(absolute)
		if err != nil {
			return state{}, fmt.Errorf("failed to read the state directory: %w", err)
		}
		// Repositories may have been laid out by hand before the first start.
		for _, entry := range entries {
			if entry.Name() != "repositories" && entry.Name() != "fault" {
				return state{}, fmt.Errorf("%s is not empty and not a state directory (it holds %s)", absolute, entry.Name())
			}
		}
		if err := os.WriteFile(s.path(marker), []byte("version 1\n"), 0o644); err != nil {
			return state{}, fmt.Errorf("failed to mark the state directory: %w", err)
		}
	}
	for _, sub := range []string{"logs", "pids"} {
		if err := os.MkdirAll(s.path(sub), 0o755); err != nil {
			return state{}, fmt.Errorf("failed to make the state directory: %w", err)
		}
	}
	return s, nil
}

// openState opens an existing state directory; os.ErrNotExist when there is
// none.
func openState(directory string) (state, error) {
	absolute, err := absoluteState(directory)
	if err != nil {
		return state{}, err
	}
	s := state{absolute}
	if _, err := os.Stat(s.path(marker)); err != nil {
		return state{}, fmt.Errorf("%s is not a state directory: %w", absolute, err)
	}
	return s, nil
}

// openLocked opens a state directory and keeps other commands off it.
func openLocked(directory string) (state, func(), error) {
	s, err := openState(directory)
	if err != nil {
		return state{}, nil, err
	}
	unlock, err := s.lock()
	return s, unlock, err
}

func absoluteState(directory string) (string, error) {
	if directory == "" {
		return "", usagef("--state DIR is missing")
	}
	absolute, err := filepath.Abs(directory)
	if err != nil {
		return "", fmt.Errorf("failed to resolve %s: %w", directory, err)
	}
	return absolute, nil
}

// lock keeps other commands off the directory until the returned function is
// called or the process ends.
func (s state) lock() (func(), error) {
	file, err := os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("failed to open the lock: %w", err)
	}
	deadline := time.Now().Add(lockWaitMax)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && !exists(s.path(marker)) {
			_ = file.Close()
			return nil, fmt.Errorf("%s was removed by another command: %w", s.directory, os.ErrNotExist)
		}
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if time.Now().After(deadline) {
			_ = file.Close()
			return nil, fmt.Errorf("another command has held %s for %s: %w", s.path("lock"), lockWaitMax, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s state) loadSettings() (settings, error) {
	var loaded settings
	if err := readJSON(s.path("settings.json"), &loaded); err != nil {
		return settings{}, err
	}
	if loaded.Version != 1 {
		return settings{}, fmt.Errorf("%s has version %d, this program knows 1", s.path("settings.json"), loaded.Version)
	}
	return loaded, nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("failed to read %s: %w", path, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("failed to read %s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("failed to encode %s: %w", path, err)
	}
	return writeFile(path, append(data, '\n'), 0o600)
}

// writeFile replaces a file whole, so that a reader never sees half of it.
func writeFile(path string, data []byte, mode os.FileMode) error {
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(temporary, data, mode); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, err)
	}
	return nil
}
