// Room: tokens.
//
// Asks the API server for a ServiceAccount's token, as a kubelet would for a
// pod, and makes a kubeconfig of it: how tests run the agent with the rights
// it will have.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	authentication "k8s.io/api/authentication/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func commandToken(arguments []string) error {
	flags := flag.NewFlagSet("token", flag.ContinueOnError)
	directory := stateFlag(flags)
	namespace := flags.String("namespace", "default", "namespace of the ServiceAccount")
	name := flags.String("serviceaccount", "", "name of the ServiceAccount")
	duration := flags.Duration("duration", time.Hour, "how long the token lasts; the server's minimum is 10m")
	out := flags.String("out", "", "write a kubeconfig here instead of printing the token")
	if _, err := parse(flags, arguments); err != nil {
		return err
	}
	if *name == "" {
		return usagef("--serviceaccount NAME is missing")
	}
	s, err := openState(*directory)
	if err != nil {
		return err
	}
	token, err := s.requestToken(*namespace, *name, *duration)
	if err != nil {
		return err
	}
	if *out == "" {
		fmt.Println(token)
		return nil
	}
	ca, err := os.ReadFile(s.cert("ca"))
	if err != nil {
		return fmt.Errorf("failed to read the certificate authority: %w", err)
	}
	config, err := s.restConfig()
	if err != nil {
		return err
	}
	return writeKubeconfig(*out, config.Host, ca, &clientcmdapi.AuthInfo{Token: token}, *namespace)
}

func (s state) requestToken(namespace, name string, duration time.Duration) (string, error) {
	clients, err := s.clientset()
	if err != nil {
		return "", err
	}
	seconds := int64(duration.Seconds())
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := clients.CoreV1().ServiceAccounts(namespace).
		CreateToken(context.Background(), name, request, meta.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("failed to get a token for %s/%s: %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}
