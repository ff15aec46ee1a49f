// Room: logins.
//
// The keys of one plane and the kubeconfigs made of them. They are made once
// per state directory and kept, so that kubeconfigs held by tests stay valid
// over restarts.
package main

import (
	"fmt"
	"net"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// serviceRange is where Services get their addresses; its first one belongs to
// the API server itself and is in its certificate.
const serviceRange = "10.96.0.0/16"

var serviceFirst = net.IPv4(10, 96, 0, 1)

// makeKeys makes all keys of a plane. The admin's kubeconfig is written last:
// its presence says that the set is whole.
func (s state) makeKeys(apiserverPort int) error {
	if exists(s.kubeconfig()) {
		return nil
	}
	if err := os.MkdirAll(s.path("keys"), 0o700); err != nil {
		return fmt.Errorf("failed to make the directory of keys: %w", err)
	}
	clusterCA, err := newAuthority("control-plane-ca")
	if err != nil {
		return err
	}
	// Its own authority: with a shared one, every client certificate could
	// pose as the front proxy.
	proxyCA, err := newAuthority("control-plane-front-proxy-ca")
	if err != nil {
		return err
	}
	if err := writeFile(s.cert("ca"), clusterCA.pem, 0o644); err != nil {
		return err
	}
	if err := writeFile(s.cert("front-proxy-ca"), proxyCA.pem, 0o644); err != nil {
		return err
	}
	signing, err := signingKey()
	if err != nil {
		return err
	}
	if err := signing.write(s.path("keys", "service-account.pub"), s.key("service-account")); err != nil {
		return err
	}
	if err := s.issueTo(proxyCA, "front-proxy-client", leaf{name: "front-proxy-client"}); err != nil {
		return err
	}
	server := leaf{
		name:      "kube-apiserver",
		dnsNames:  []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		addresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceFirst},
	}
	if err := s.issueTo(clusterCA, "apiserver", server); err != nil {
		return err
	}
	return s.makeLogins(clusterCA, apiserverPort)
}

func (s state) issueTo(signer *authority, file string, what leaf) error {
	issued, err := signer.issue(what)
	if err != nil {
		return err
	}
	return issued.write(s.cert(file), s.key(file))
}

func (s state) makeLogins(signer *authority, apiserverPort int) error {
	logins := []struct {
		path string
		leaf leaf
	}{
		{s.login("controller-manager"), leaf{name: "system:kube-controller-manager"}},
		{s.login("scheduler"), leaf{name: "system:kube-scheduler"}},
		{s.login("kwok"), leaf{name: "kwok", groups: []string{"system:masters"}}},
		{s.kubeconfig(), leaf{name: "admin", groups: []string{"system:masters"}}},
	}
	for _, login := range logins {
		issued, err := signer.issue(login.leaf)
		if err != nil {
			return err
		}
		user := &clientcmdapi.AuthInfo{ClientCertificateData: issued.certificate, ClientKeyData: issued.key}
		if err := writeKubeconfig(login.path, apiserverURL(apiserverPort), signer.pem, user, ""); err != nil {
			return err
		}
	}
	return nil
}

func apiserverURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

// writeKubeconfig writes a kubeconfig that refers to no other file.
func writeKubeconfig(path, server string, ca []byte, user *clientcmdapi.AuthInfo, namespace string) error {
	const name = "control-plane"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("failed to encode the kubeconfig %s: %w", path, err)
	}
	return writeFile(path, data, 0o600)
}
