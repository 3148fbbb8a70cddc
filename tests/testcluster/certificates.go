package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const validity = 365 * 24 * time.Hour

// certificates are what the kubeconfig and the readiness probe need, as PEM.
type certificates struct {
	ca, admin, adminKey []byte
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// keptCertificates loads what an earlier run left in the folder, or makes it.
func keptCertificates(dir string) (*certificates, error) {
	kept := &certificates{}
	missing := false
	for name, into := range map[string]*[]byte{"ca.crt": &kept.ca, "admin.crt": &kept.admin, "admin.key": &kept.adminKey} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			missing = true
			continue
		}
		if err != nil {
			return nil, err
		}
		*into = content
	}
	if !missing {
		return kept, nil
	}
	if err := makeCertificates(dir); err != nil {
		return nil, err
	}
	return keptCertificates(dir)
}

func makeCertificates(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	serviceAccounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(dir, "sa", serviceAccounts); err != nil {
		return err
	}
	ca, err := issue(dir, "ca", nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "testcluster"},
		IsCA:    true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	})
	if err != nil {
		return err
	}
	if _, err := issue(dir, "apiserver", ca, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}); err != nil {
		return err
	}
	_, err = issue(dir, "admin", ca, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

func issue(dir, name string, by *authority, template *x509.Certificate) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(validity)
	if by == nil {
		by = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), block, 0o600); err != nil {
		return nil, err
	}
	return &authority{certificate, key}, writeKey(dir, name, key)
}

func writeKey(dir, name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return os.WriteFile(filepath.Join(dir, name+".key"), block, 0o600)
}

func (c *certificates) writeKubeconfig(file, server string) error {
	encoded := base64.StdEncoding.EncodeToString
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: testcluster
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: admin
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: testcluster
  context: {cluster: testcluster, user: admin}
current-context: testcluster
`, server, encoded(c.ca), encoded(c.admin), encoded(c.adminKey))
	return os.WriteFile(file, []byte(content), 0o600)
}

func (c *certificates) client() (*http.Client, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca)
	pair, err := tls.X509KeyPair(c.admin, c.adminKey)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
	}}, nil
}
