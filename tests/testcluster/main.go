// Command testcluster is a Kubernetes control plane for tests: etcd, kube-apiserver and the
// controllers that its clients rely on, in one process on loopback. No kubelet and no scheduler run,
// so Pods are objects only.
//
// Once it serves, it prints one line of JSON: kubeconfig, server, etcd, pid, seconds. Started again
// with the same -dir it keeps its data, certificates and ports, so that clients see a restart and not
// a new cluster.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// The slowest start seen, on two busy cores with a cold disk, took 20 s.
const readyWithin = 120 * time.Second

// Policy of the audit log: who did what to which object, without the bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

type options struct {
	dir           string
	port          int
	kubeconfig    string
	auditLog      string
	controllers   bool
	apiserverArgs string
	withStdin     bool
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "folder of the state (default: a new temporary one)")
	flag.IntVar(&o.port, "port", 0, "the API server's port (0: the one used before in -dir, else a free one)")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "where to write the kubeconfig (default: DIR/kubeconfig)")
	flag.StringVar(&o.auditLog, "audit-log", "", "file for the API server's audit events, one JSON object a line")
	flag.BoolVar(&o.controllers, "controllers", true, "run garbage collector, namespace, serviceaccount and clusterrole controllers")
	flag.StringVar(&o.apiserverArgs, "apiserver-args", "", "more flags for kube-apiserver, space separated")
	flag.BoolVar(&o.withStdin, "exit-with-stdin", false, "stop when standard input closes, so that no cluster outlives its test")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	started := time.Now()
	dir, err := stateFolder(o.dir)
	if err != nil {
		return err
	}
	if o.kubeconfig == "" {
		o.kubeconfig = filepath.Join(dir, "kubeconfig")
	}
	ports, err := keptPorts(dir, o.port)
	if err != nil {
		return err
	}
	certificates, err := keptCertificates(filepath.Join(dir, "pki"))
	if err != nil {
		return err
	}
	etcdURL := fmt.Sprintf("http://127.0.0.1:%d", ports.Etcd)
	etcd, err := startEtcd(filepath.Join(dir, "etcd"), etcdURL, fmt.Sprintf("http://127.0.0.1:%d", ports.Peer))
	if err != nil {
		return err
	}
	defer etcd.Close()

	command := app.NewAPIServerCommand() // its context ends with SIGTERM or SIGINT
	ctx := command.Context()
	arguments, err := apiserverArguments(o, dir, ports, etcdURL)
	if err != nil {
		return err
	}
	command.SetArgs(arguments)
	ended := make(chan error, 1)
	go func() { ended <- command.Execute() }()
	if o.withStdin {
		go stopWithStdin()
	}

	server := fmt.Sprintf("https://127.0.0.1:%d", ports.APIServer)
	if err := certificates.writeKubeconfig(o.kubeconfig, server); err != nil {
		return err
	}
	if err := awaitReady(certificates, server, ended); err != nil {
		return err
	}
	if o.controllers {
		if err := startControllers(ctx, o.kubeconfig); err != nil {
			return err
		}
	}
	ready := map[string]any{
		"kubeconfig": o.kubeconfig, "server": server, "etcd": etcdURL,
		"pid": os.Getpid(), "seconds": time.Since(started).Seconds(),
	}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	return <-ended
}

func stateFolder(given string) (string, error) {
	if given == "" {
		return os.MkdirTemp("", "testcluster")
	}
	if err := os.MkdirAll(given, 0o700); err != nil {
		return "", err
	}
	return filepath.Abs(given)
}

func startEtcd(dir, client, peer string) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.UnsafeNoFsync = true // a test's data need not outlive the machine
	clientURL, err := url.Parse(client)
	if err != nil {
		return nil, err
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return nil, err
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case <-time.After(readyWithin):
		return nil, fmt.Errorf("etcd is not ready after %s", readyWithin)
	}
}

func apiserverArguments(o options, dir string, p ports, etcdURL string) ([]string, error) {
	pki := filepath.Join(dir, "pki")
	arguments := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.APIServer),
		"--tls-cert-file=" + filepath.Join(pki, "apiserver.crt"),
		"--tls-private-key-file=" + filepath.Join(pki, "apiserver.key"),
		"--client-ca-file=" + filepath.Join(pki, "ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(pki, "sa.key"),
		"--service-account-signing-key-file=" + filepath.Join(pki, "sa.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--endpoint-reconciler-type=none", // loopback is refused as an endpoint of the service `kubernetes`
		"--v=0",
	}
	if o.auditLog != "" {
		policy := filepath.Join(dir, "audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return nil, err
		}
		arguments = append(arguments, "--audit-policy-file="+policy, "--audit-log-path="+o.auditLog,
			"--audit-log-mode=blocking", "--audit-log-format=json")
	}
	return append(arguments, strings.Fields(o.apiserverArgs)...), nil
}

func awaitReady(c *certificates, server string, ended <-chan error) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	deadline := time.After(readyWithin)
	for {
		if response, err := client.Get(server + "/readyz"); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the API server ended before it was ready: %w", err)
		case <-deadline:
			return fmt.Errorf("the API server is not ready after %s", readyWithin)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stopWithStdin ends the process as a SIGTERM would, once whoever started it is gone.
func stopWithStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
}
