// Room: cluster.
//
// What a plane needs beyond running processes before tests may use it: a node,
// the default ServiceAccount, and the ConfigMap that says that this cluster is
// a throwaway, without which tests refuse to touch it.
package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	throwawayNamespace = "kube-system"
	throwawayName      = "fairway-throwaway"
	nodeName           = "node-1"
)

// clusterMax bounds each of the waits in this room.
const clusterMax = 60 * time.Second

// requestMax bounds one request.
const requestMax = 5 * time.Second

func (s state) restConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("failed to read %s: %w", s.kubeconfig(), err)
	}
	config.Timeout = requestMax
	config.QPS = -1
	return config, nil
}

func (s state) httpClient() (*http.Client, error) {
	config, err := s.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return client, nil
}

func (s state) clientset() (*kubernetes.Clientset, error) {
	config, err := s.restConfig()
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return clients, nil
}

// until asks again until the answer is yes; its error is the last one seen.
func until(parent context.Context, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(parent, clusterMax)
	defer cancel()
	var last error
	for {
		done, err := ask(ctx)
		if done {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if parent.Err() != nil {
				return fmt.Errorf("%s: gave up: %w", what, context.Cause(parent))
			}
			if last == nil {
				return fmt.Errorf("%s: not so after %s", what, clusterMax)
			}
			return fmt.Errorf("%s: not so after %s: %w", what, clusterMax, last)
		case <-time.After(pollInterval):
		}
	}
}

// done reads the outcome of a create that may be repeated.
func done(err error) (bool, error) {
	if err == nil || apierrors.IsAlreadyExists(err) {
		return true, nil
	}
	return false, err
}

// createMarker waits for kube-system as well, which the API server makes a
// moment after it says ready.
func createMarker(ctx context.Context, clients kubernetes.Interface) error {
	marker := &core.ConfigMap{
		ObjectMeta: meta.ObjectMeta{Name: throwawayName, Namespace: throwawayNamespace},
		Data:       map[string]string{"meaning": "everything in this cluster may be destroyed by tests"},
	}
	return until(ctx, "ConfigMap "+throwawayNamespace+"/"+throwawayName, func(ctx context.Context) (bool, error) {
		_, err := clients.CoreV1().ConfigMaps(throwawayNamespace).Create(ctx, marker, meta.CreateOptions{})
		return done(err)
	})
}

func createNode(ctx context.Context, clients kubernetes.Interface) error {
	node := &core.Node{ObjectMeta: meta.ObjectMeta{
		Name: nodeName,
		Labels: map[string]string{
			"kubernetes.io/arch":     "amd64",
			"kubernetes.io/hostname": nodeName,
			"kubernetes.io/os":       "linux",
		},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
	return until(ctx, "node "+nodeName, func(ctx context.Context) (bool, error) {
		_, err := clients.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{})
		return done(err)
	})
}

func waitServiceAccount(ctx context.Context, clients kubernetes.Interface) error {
	return until(ctx, "ServiceAccount default/default", func(ctx context.Context) (bool, error) {
		_, err := clients.CoreV1().ServiceAccounts("default").Get(ctx, "default", meta.GetOptions{})
		return err == nil, err
	})
}

// waitNode waits until the node is Ready and, where there is a controller that
// does so, until it was cleared for scheduling.
func waitNode(ctx context.Context, clients kubernetes.Interface, cleared bool) error {
	return until(ctx, "node "+nodeName+" Ready", func(ctx context.Context) (bool, error) {
		node, err := clients.CoreV1().Nodes().Get(ctx, nodeName, meta.GetOptions{})
		if err != nil {
			return false, err
		}
		ready := slices.ContainsFunc(node.Status.Conditions, func(c core.NodeCondition) bool {
			return c.Type == core.NodeReady && c.Status == core.ConditionTrue
		})
		return ready && (!cleared || len(node.Spec.Taints) == 0), nil
	})
}
