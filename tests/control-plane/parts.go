// Room: parts.
//
// The parts of a control plane: their order, the flags each runs with, and
// when each counts as started. Flags suit tests: no leader election, no
// reconciling of endpoints, high request limits, serving ports only where a
// client needs one.
package main

import (
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// stages is what KWOK simulates.
//
//go:embed stages.yaml
var stages []byte

// partOrder is the order of starting; stopping goes the other way round.
var partOrder = []string{"etcd", "apiserver", "controller-manager", "scheduler", "kwok"}

var partsMinimal = []string{"etcd", "apiserver"}

// componentOf maps a part to the name its process runs under.
var componentOf = map[string]string{
	"etcd":               "etcd",
	"apiserver":          "kube-apiserver",
	"controller-manager": "kube-controller-manager",
	"scheduler":          "kube-scheduler",
	"kwok":               "kwok",
}

// controllers are those that tests of a GitOps agent can meet. Those left out
// (volumes, certificates, node addresses, autoscaling, quotas) have nothing to act on
// here and cost start time.
var controllers = []string{
	"clusterrole-aggregation-controller", "cronjob-controller", "daemonset-controller", "deployment-controller",
	"disruption-controller", "endpointslice-controller", "garbage-collector-controller", "job-controller",
	"namespace-controller", "node-lifecycle-controller", "pod-garbage-collector-controller", "replicaset-controller",
	"root-ca-certificate-publisher-controller", "serviceaccount-controller", "serviceaccount-token-controller",
	"statefulset-controller", "taint-eviction-controller", "ttl-after-finished-controller",
}

// readParts understands a --parts flag.
func readParts(list string) ([]string, error) {
	switch list {
	case "all":
		return partOrder, nil
	case "minimal":
		return partsMinimal, nil
	}
	asked := strings.Split(list, ",")
	for i, name := range asked {
		part, ok := readPart(name)
		if !ok {
			return nil, usagef("unknown part %q; parts are %s", name, strings.Join(partOrder, ", "))
		}
		asked[i] = part
	}
	for _, needed := range partsMinimal {
		if !slices.Contains(asked, needed) {
			return nil, usagef("--parts lacks %s, without which nothing runs", needed)
		}
	}
	var ordered []string
	for _, part := range partOrder {
		if slices.Contains(asked, part) {
			ordered = append(ordered, part)
		}
	}
	return ordered, nil
}

// readPart accepts a part's name and its component's.
func readPart(name string) (string, bool) {
	for part, component := range componentOf {
		if name == part || name == component {
			return part, true
		}
	}
	return "", false
}

// arguments are what a part's process is started with.
func (s state) arguments(part string, p ports, fsync bool) []string {
	component := componentOf[part]
	switch part {
	case "etcd":
		return []string{
			component,
			"--data-dir=" + s.path("etcd"),
			"--listen-client-url=" + etcdURL(p.Etcd),
			"--listen-peer-url=" + etcdURL(p.EtcdPeer),
			fmt.Sprintf("--unsafe-no-fsync=%t", !fsync),
		}
	case "apiserver":
		return append([]string{component}, s.apiserverArguments(p)...)
	case "controller-manager":
		return []string{
			component,
			"--kubeconfig=" + s.login(part),
			"--leader-elect=false",
			"--secure-port=0",
			"--use-service-account-credentials=true",
			"--root-ca-file=" + s.cert("ca"),
			"--service-account-private-key-file=" + s.key("service-account"),
			"--kube-api-qps=1000", // at the default of 20, throttling takes most of the start
			"--kube-api-burst=2000",
			"--controllers=" + strings.Join(controllers, ","),
		}
	case "scheduler":
		return []string{
			component,
			"--kubeconfig=" + s.login(part),
			"--leader-elect=false",
			"--secure-port=0",
			"--kube-api-qps=1000",
			"--kube-api-burst=2000",
		}
	case "kwok":
		return []string{
			component,
			"--kubeconfig=" + s.login(part),
			"--manage-all-nodes=true",
			"--node-lease-duration-seconds=40",
			"--config=" + s.path("stages.yaml"),
		}
	}
	panic("unknown part " + part) // readParts has refused others
}

func (s state) apiserverArguments(p ports) []string {
	return []string{
		"--etcd-servers=" + etcdURL(p.Etcd),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.Apiserver),
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + s.cert("apiserver"),
		"--tls-private-key-file=" + s.key("apiserver"),
		"--client-ca-file=" + s.cert("ca"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.path("keys", "service-account.pub"),
		"--service-account-signing-key-file=" + s.key("service-account"),
		"--service-cluster-ip-range=" + serviceRange,
		"--proxy-client-cert-file=" + s.cert("front-proxy-client"),
		"--proxy-client-key-file=" + s.key("front-proxy-client"),
		"--requestheader-client-ca-file=" + s.cert("front-proxy-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		// Load tests are to meet the agent's limits, not the server's.
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
		"--profiling=false",
	}
}

func etcdURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// settleTime is how long a part without a port must have lived to count as
// started; a wrong flag or key ends it well before.
const settleTime = 400 * time.Millisecond

// startMax bounds the start of one part. It is generous for machines that
// are busy compiling; a part that ends is noticed at once.
const startMax = 90 * time.Second

// launch starts a part's process. The channel is closed when that ends; it is
// nil when the part ran already.
func (s state) launch(part string, p ports, fsync bool) (<-chan struct{}, error) {
	if s.recall(part).condition() != stopped {
		return nil, nil
	}
	if port := p.of(part); port != 0 && !portIsFree(port) {
		return nil, fmt.Errorf("%s cannot start: its port %d is in use by another process", part, port)
	}
	if part == "kwok" {
		if err := writeFile(s.path("stages.yaml"), stages, 0o644); err != nil {
			return nil, err
		}
	}
	if part == "etcd" {
		// etcd insists on a private directory.
		if err := os.MkdirAll(s.path("etcd"), 0o700); err != nil {
			return nil, fmt.Errorf("failed to make the data directory: %w", err)
		}
	}
	_, ended, err := s.spawn(part, s.arguments(part, p, fsync))
	return ended, err
}

// waitServing waits until a launched part serves.
func (s state) waitServing(part string, p ports, ended <-chan struct{}) error {
	serves, err := s.probe(part, p)
	if err != nil {
		return err
	}
	begun := time.Now()
	for {
		select {
		case <-ended:
			return s.failure(part, "ended while starting")
		case <-time.After(pollInterval):
		}
		if serves(time.Since(begun)) {
			return nil
		}
		if time.Since(begun) > startMax {
			return s.failure(part, fmt.Sprintf("not ready after %s", startMax))
		}
	}
}

// probe returns the question whether a part serves.
func (s state) probe(part string, p ports) (func(time.Duration) bool, error) {
	switch part {
	case "etcd":
		return func(time.Duration) bool { return answers(http.DefaultClient, etcdURL(p.Etcd)+"/health") }, nil
	case "apiserver":
		client, err := s.httpClient()
		if err != nil {
			return nil, err
		}
		return func(time.Duration) bool { return answers(client, apiserverURL(p.Apiserver)+"/readyz") }, nil
	default:
		return func(lived time.Duration) bool { return lived > settleTime }, nil
	}
}

func answers(client *http.Client, url string) bool {
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// logTail is how many lines of a part's log a failure shows.
const logTail = 15

// failure is an error that shows what the part said last.
func (s state) failure(part, what string) error {
	data, err := os.ReadFile(s.log(part))
	if err != nil {
		return fmt.Errorf("%s: %s (and no log: %w)", part, what, err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > logTail {
		lines = lines[len(lines)-logTail:]
	}
	return fmt.Errorf("%s: %s; the last lines of %s:\n  %s", part, what, s.log(part), strings.Join(lines, "\n  "))
}
