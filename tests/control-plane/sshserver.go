// Room: ssh server.
//
// Serves the same repositories over ssh, as a forge does: one account, public
// keys only, one command, run by the installed git. Beside the https server in
// the same process; started when --ssh names who may sign in.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshAccount is the one account that forges have.
const sshAccount = "git"

// sshSignInMax is how long a client may take to sign in.
const sshSignInMax = 30 * time.Second

var sshCommand = regexp.MustCompile(`^git-upload-pack '/?([^']+)'$`)

// startSSH listens on a port of its own and writes it to "ssh-address", and the
// public host keys to "ssh-host-keys", a line each.
func (f *forge) startSSH(host, authorizedFile string, kinds []string) (io.Closer, error) {
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			return nil, authorized(authorizedFile, meta.User(), key)
		},
	}
	var lines []string
	for _, kind := range kinds {
		signer, err := f.state.hostKey(kind)
		if err != nil {
			return nil, err
		}
		config.AddHostKey(signer)
		lines = append(lines, string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("failed to listen for ssh: %w", err)
	}
	if err := writeFile(f.state.path("ssh-host-keys"), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return nil, err
	}
	if err := writeFile(f.state.path("ssh-address"), []byte(listener.Addr().String()), 0o644); err != nil {
		return nil, err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go f.serveSSH(connection, config)
		}
	}()
	return listener, nil
}

// authorized reads the file at each sign-in, so that a test may change it.
func authorized(file, user string, offered ssh.PublicKey) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("failed to read the authorized keys: %w", err)
	}
	for len(data) > 0 && user == sshAccount {
		key, _, _, rest, err := ssh.ParseAuthorizedKey(data)
		if err != nil {
			break
		}
		if string(key.Marshal()) == string(offered.Marshal()) {
			return nil
		}
		data = rest
	}
	return errors.New("not authorized")
}

// hostKey is made once and kept, so that a restart shows the same.
func (s state) hostKey(kind string) (ssh.Signer, error) {
	file := s.path("ssh-host-" + kind + ".key")
	if data, err := os.ReadFile(file); err == nil {
		return ssh.ParsePrivateKey(data)
	}
	var key crypto.PrivateKey
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		return nil, usagef("unknown kind of host key %q: ed25519, ecdsa or rsa", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to make a host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, fmt.Errorf("failed to encode a host key: %w", err)
	}
	if err := writeFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

func (f *forge) serveSSH(connection net.Conn, config *ssh.ServerConfig) {
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(sshSignInMax))
	session, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		f.recordSSH("sign-in refused")
		return
	}
	_ = connection.SetDeadline(time.Time{})
	defer func() { _ = session.Close() }()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go f.serveSession(channel, requests)
	}
}

// serveSession runs the one command of a session.
func (f *forge) serveSession(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		var asked struct{ Command string }
		if err := ssh.Unmarshal(request.Payload, &asked); err != nil {
			_ = request.Reply(false, nil)
			return
		}
		_ = request.Reply(true, nil)
		f.recordSSH(asked.Command)
		status := f.runSSH(channel, asked.Command)
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

// runSSH returns the exit status of git.
func (f *forge) runSSH(channel ssh.Channel, command string) uint32 {
	if kind, _, _ := f.fault(); kind == "hang" {
		_, _ = io.Copy(io.Discard, channel)
		return 1
	}
	words := sshCommand.FindStringSubmatch(command)
	if words == nil || !repositoryName.MatchString(words[1]) {
		_, _ = fmt.Fprintf(channel.Stderr(), "fatal: this account serves git-upload-pack only\n")
		return 128
	}
	path := filepath.Join(f.state.path("repositories"), words[1])
	process := exec.Command(f.git, "upload-pack", "--strict", path)
	process.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		// What is not there belongs to nobody, and would be refused for that instead of being missing.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	process.Stdout, process.Stderr = channel, channel.Stderr()
	// Not process.Stdin, whose copy would keep a process that has ended waiting for the client.
	input, err := process.StdinPipe()
	if err != nil {
		return 128
	}
	go func() {
		_, _ = io.Copy(input, channel)
		_ = input.Close()
	}()
	var ended *exec.ExitError
	switch err := process.Run(); {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return uint32(ended.ExitCode())
	default:
		return 128
	}
}

func (f *forge) recordSSH(what string) {
	f.logging.Lock()
	defer f.logging.Unlock()
	_, _ = fmt.Fprintf(f.log, "%s SSH %s - - - %s\n",
		time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), strings.ReplaceAll(what, " ", "_"), "ssh")
}
