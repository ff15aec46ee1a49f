// Room: ports.
//
// Picks free loopback ports and keeps them, so that a restarted part is found
// where it was. Ports lie below the range the kernel hands out for outgoing
// connections: one chosen from that range could be taken in the moment between
// choosing and listening. Planes starting side by side exclude each other by
// byte-range locks on one file, byte N standing for port N; the kernel drops
// them with the process, so nothing can go stale.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	portLowest  = 20000
	portHighest = 32000
	// portTries bounds the search; the range would have to be nearly full for
	// this many random picks to miss.
	portTries = 500
)

// ports are the ports of a plane; the other parts listen on none.
type ports struct {
	Etcd      int `json:"etcd"`
	EtcdPeer  int `json:"etcd-peer"`
	Apiserver int `json:"apiserver"`
}

// of returns a part's port, 0 for a part that has none.
func (p ports) of(name string) int {
	switch name {
	case "etcd":
		return p.Etcd
	case "apiserver":
		return p.Apiserver
	}
	return 0
}

// loadPorts returns the kept ports, or picks and keeps new ones. The returned
// file holds the reservations and is to be closed once the ports are in use.
func (s state) loadPorts() (ports, *os.File, error) {
	var kept ports
	err := readJSON(s.path("ports.json"), &kept)
	if err == nil {
		return kept, nil, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return ports{}, nil, err
	}
	reservations, err := openReservations()
	if err != nil {
		return ports{}, nil, err
	}
	for _, port := range []*int{&kept.Etcd, &kept.EtcdPeer, &kept.Apiserver} {
		if *port, err = pickPort(reservations); err != nil {
			_ = reservations.Close()
			return ports{}, nil, err
		}
	}
	return kept, reservations, writeJSON(s.path("ports.json"), kept)
}

func openReservations() (*os.File, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("fairway-control-plane-ports-%d", os.Getuid()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("failed to open the port reservations: %w", err)
	}
	return file, nil
}

func pickPort(reservations *os.File) (int, error) {
	for range portTries {
		port := portLowest + rand.IntN(portHighest-portLowest)
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(port), Len: 1}
		// Locks of the open file, not of the process: only these see each other
		// when two planes are started from within one process.
		if unix.FcntlFlock(reservations.Fd(), unix.F_OFD_SETLK, &lock) != nil {
			continue
		}
		if portIsFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d after %d tries", portLowest, portHighest, portTries)
}

func portIsFree(port int) bool {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}
