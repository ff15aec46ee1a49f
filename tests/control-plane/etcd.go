// Room: etcd.
//
// etcd as a library, with the handful of settings a single loopback member
// needs. Client traffic is plain HTTP: the port is bound to loopback and the
// data is a test's.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// etcdStartMax bounds opening the data directory and electing the one member.
const etcdStartMax = 60 * time.Second

func runEtcd(arguments []string) int {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	dataDir := flags.String("data-dir", "", "where the data is kept")
	client := flags.String("listen-client-url", "", "for example http://127.0.0.1:2379")
	peer := flags.String("listen-peer-url", "", "for example http://127.0.0.1:2380")
	unsafeNoFsync := flags.Bool("unsafe-no-fsync", false, "do not wait for the disk; data may be lost with the machine, not with the process")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	config, err := etcdConfig(*dataDir, *client, *peer, *unsafeNoFsync)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 2
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd: failed to start:", err)
		return 1
	}
	defer server.Close()

	ctx, stop := signalContext(context.Background())
	defer stop()
	deadline := time.NewTimer(etcdStartMax)
	defer deadline.Stop()
	ready := server.Server.ReadyNotify()
	for {
		select {
		case <-ready:
			deadline.Stop()
			ready = nil
		case <-deadline.C:
			fmt.Fprintln(os.Stderr, "etcd: not ready after", etcdStartMax)
			return 1
		case err := <-server.Err():
			fmt.Fprintln(os.Stderr, "etcd: failed:", err)
			return 1
		case <-ctx.Done():
			return 0
		}
	}
}

// walSegmentBytes is how much disk is taken ahead for the write-ahead log, twice;
// etcd's own 64 MB add up when many planes run side by side.
const walSegmentBytes = 16 << 20

func etcdConfig(dataDir, client, peer string, unsafeNoFsync bool) (*embed.Config, error) {
	if dataDir == "" || client == "" || peer == "" {
		return nil, fmt.Errorf("--data-dir, --listen-client-url and --listen-peer-url are required")
	}
	clientURL, err := url.Parse(client)
	if err != nil {
		return nil, fmt.Errorf("failed to read --listen-client-url: %w", err)
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return nil, fmt.Errorf("failed to read --listen-peer-url: %w", err)
	}
	wal.SegmentSizeBytes = walSegmentBytes
	config := embed.NewConfig()
	config.Name = "default"
	config.Dir = dataDir
	config.ListenClientUrls = []url.URL{*clientURL}
	config.AdvertiseClientUrls = []url.URL{*clientURL}
	config.ListenPeerUrls = []url.URL{*peerURL}
	config.AdvertisePeerUrls = []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = unsafeNoFsync
	// A lone member needs no patience with others: it elects itself sooner.
	config.TickMs, config.ElectionMs = 20, 200
	// Unset, every request counts as slow and is logged.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	config.LogLevel = "warn"
	config.LogOutputs = []string{"stderr"}
	return config, nil
}
