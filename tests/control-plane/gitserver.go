// Room: git server.
//
// The process that serves a state directory's repositories over TLS: its
// flags, its settings, its port and key, its start and end. What it answers is
// the forge's subject.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const gitReadyMax = 15 * time.Second

// gitSettings is what the server was asked, kept so that it can be started
// again after a kill, on the same port.
type gitSettings struct {
	Version  int    `json:"version"`
	Listen   string `json:"listen"`
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	Token    string `json:"token,omitempty"`
	// The authorized keys for ssh, and the kinds of its host keys; no file, no ssh.
	SSH         string `json:"ssh,omitempty"`
	SSHHostKeys string `json:"ssh-host-keys,omitempty"`
	// The process to end with, 0 for none.
	Watched        int    `json:"watched,omitempty"`
	WatchedStarted string `json:"watched-started,omitempty"`
}

func commandGitServer(arguments []string) error {
	flags := flag.NewFlagSet("git-server", flag.ContinueOnError)
	directory := stateFlag(flags)
	asked := gitSettings{Version: 1}
	flags.StringVar(&asked.Listen, "listen", "127.0.0.1:0", "address to listen on")
	flags.StringVar(&asked.User, "user", "", "user of basic authentication")
	flags.StringVar(&asked.Password, "password", "", "password of basic authentication")
	flags.StringVar(&asked.Token, "token", "", "bearer token; also accepted as the password of any user")
	flags.StringVar(&asked.SSH, "ssh", "", "serve ssh as well, to the keys in this file")
	flags.StringVar(&asked.SSHHostKeys, "ssh-host-keys", "ed25519", "kinds of host keys: ed25519,ecdsa,rsa")
	flags.IntVar(&asked.Watched, "watch-parent", 0, "stop when this pid is gone")
	detach := flags.Bool("detach", false, "return when ready, leaving the server running")
	resume := flags.Bool("resume", false, "use the settings of the last time")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	if (asked.User == "") != (asked.Password == "") {
		return usagef("--user and --password go together")
	}
	if asked.Watched != 0 {
		watched, err := findProcess(asked.Watched)
		if err != nil {
			return fmt.Errorf("--watch-parent: %w", err)
		}
		asked.WatchedStarted = watched.started
	}
	s, err := createState(*directory)
	if err != nil {
		return err
	}
	if *resume {
		err = readJSON(s.path("git-server.json"), &asked)
	} else {
		err = writeJSON(s.path("git-server.json"), asked)
	}
	if err != nil {
		return err
	}
	if *detach {
		return s.detachGitServer()
	}
	return s.serveGit(asked)
}

// detachGitServer leaves a server behind and waits until it answers.
func (s state) detachGitServer() error {
	if s.recall("git-server").condition() != stopped {
		return fmt.Errorf("a git server already runs on %s", s.directory)
	}
	_ = os.Remove(s.path("ready"))
	_, ended, err := s.spawn("git-server", []string{"git-server", "--resume", "--state=" + s.directory})
	if err != nil {
		return err
	}
	deadline := time.After(gitReadyMax)
	for !exists(s.path("ready")) {
		select {
		case <-ended:
			return s.failure("git-server", "ended while starting")
		case <-deadline:
			return s.failure("git-server", fmt.Sprintf("not ready after %s", gitReadyMax))
		case <-time.After(pollInterval):
		}
	}
	address, err := os.ReadFile(s.path("url"))
	if err != nil {
		return fmt.Errorf("failed to read the URL: %w", err)
	}
	fmt.Print(string(address))
	return nil
}

// serveGit serves until a signal, or until the watched process is gone.
func (s state) serveGit(asked gitSettings) error {
	handler, err := s.newForge(asked)
	if err != nil {
		return err
	}
	certificate, err := s.gitCertificate()
	if err != nil {
		return err
	}
	listener, err := s.gitListen(asked.Listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}},
		ReadHeaderTimeout: 30 * time.Second,
	}
	ctx, cancel := signalContext(context.Background())
	defer cancel()
	if asked.Watched != 0 {
		go func() {
			_ = waitEnd(process{asked.Watched, asked.WatchedStarted}, nil)
			cancel()
		}()
	}
	// Closing rather than finishing open requests: a hanging one never finishes.
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if asked.SSH != "" {
		host, _, _ := net.SplitHostPort(asked.Listen)
		closer, err := handler.startSSH(host, asked.SSH, strings.Split(asked.SSHHostKeys, ","))
		if err != nil {
			return err
		}
		defer func() { _ = closer.Close() }()
	}
	if err := s.announceGit(listener.Addr()); err != nil {
		return err
	}
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("failed to serve: %w", err)
	}
	return nil
}

func (s state) announceGit(address net.Addr) error {
	self, err := findProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := s.remember("git-server", self); err != nil {
		return err
	}
	line := "https://" + address.String() + "\n"
	if err := writeFile(s.path("url"), []byte(line), 0o644); err != nil {
		return err
	}
	fmt.Print(line)
	return writeFile(s.path("ready"), nil, 0o644)
}

// gitPort is the port of the last time, 0 when there was none.
func (s state) gitPort() int {
	data, err := os.ReadFile(s.path("url"))
	if err != nil {
		return 0
	}
	last, err := url.Parse(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(last.Port())
	if err != nil {
		return 0
	}
	return port
}

// gitListen takes the port of the last time when any will do, so that URLs
// held by tests stay valid over a restart.
func (s state) gitListen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usagef("--listen: %v", err)
	}
	if last := s.gitPort(); port == "0" && last != 0 {
		if listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(last))); err == nil {
			return listener, nil
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	return listener, nil
}

func (s state) gitCertificate() (tls.Certificate, error) {
	certFile, keyFile := s.path("git-server.crt"), s.path("git-server.key")
	if !exists(s.path("ca.crt")) {
		signer, err := newAuthority("control-plane-git-ca")
		if err != nil {
			return tls.Certificate{}, err
		}
		issued, err := signer.issue(leaf{
			name:      "localhost",
			dnsNames:  []string{"localhost"},
			addresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		})
		if err != nil {
			return tls.Certificate{}, err
		}
		if err := issued.write(certFile, keyFile); err != nil {
			return tls.Certificate{}, err
		}
		if err := writeFile(s.path("ca.crt"), signer.pem, 0o644); err != nil {
			return tls.Certificate{}, err
		}
	}
	loaded, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("failed to read the git server's key: %w", err)
	}
	return loaded, nil
}
