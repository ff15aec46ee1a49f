// Room: keys.
//
// Makes certificate authorities and certificates as strict clients want them:
// version 3, subject alternative names, ECDSA P-256, private keys as PKCS#8.
// Everything is valid for ten years around now: a test's clock may be off.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

const (
	validBefore = 24 * time.Hour
	validAfter  = 10 * 365 * 24 * time.Hour
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// leaf says what a certificate is for: a server when it has names or
// addresses, a client otherwise.
type leaf struct {
	name      string
	groups    []string
	dnsNames  []string
	addresses []net.IP
}

// pair is a certificate and its key, both PEM.
type pair struct{ certificate, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("failed to make the key of %s: %w", name, err)
	}
	template, err := template(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("failed to make the certificate of %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("failed to read back the certificate of %s: %w", name, err)
	}
	return &authority{certificate, key, certificatePEM(der)}, nil
}

func (a *authority) issue(what leaf) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("failed to make the key of %s: %w", what.name, err)
	}
	template, err := template(pkix.Name{CommonName: what.name, Organization: what.groups})
	if err != nil {
		return pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	template.DNSNames, template.IPAddresses = what.dnsNames, what.addresses
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(what.dnsNames)+len(what.addresses) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	} else {
		// Strict verifiers refuse a certificate without any such name.
		template.DNSNames = []string{"client.invalid"}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("failed to make the certificate of %s: %w", what.name, err)
	}
	keyPEM, err := privatePEM(key)
	if err != nil {
		return pair{}, err
	}
	return pair{certificatePEM(der), keyPEM}, nil
}

func template(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("failed to make a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-validBefore),
		NotAfter:     now.Add(validAfter),
	}, nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func privatePEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("failed to encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// signingKey makes the pair that ServiceAccount tokens are signed and checked
// with; the "certificate" of the pair is the bare public key.
func signingKey() (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("failed to make the signing key: %w", err)
	}
	keyPEM, err := privatePEM(key)
	if err != nil {
		return pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return pair{}, fmt.Errorf("failed to encode the signing key: %w", err)
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), keyPEM}, nil
}

// write stores a pair as NAME.crt and NAME.key.
func (p pair) write(certificate, key string) error {
	if err := writeFile(key, p.key, 0o600); err != nil {
		return err
	}
	return writeFile(certificate, p.certificate, 0o644)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
