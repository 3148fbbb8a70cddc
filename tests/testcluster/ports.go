package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
)

// ports are kept across restarts, for a client must find the same server and the same etcd again.
type ports struct {
	APIServer, Etcd, Peer int
}

func keptPorts(dir string, apiserver int) (ports, error) {
	file := filepath.Join(dir, "ports.json")
	var p ports
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &p)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return p, err
	}
	if apiserver != 0 {
		p.APIServer = apiserver
	}
	// All listeners stay open until each has its port: none can be given twice.
	for _, port := range []*int{&p.APIServer, &p.Etcd, &p.Peer} {
		if *port != 0 {
			continue
		}
		listener, err := listen()
		if err != nil {
			return p, err
		}
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	content, err = json.Marshal(p)
	if err != nil {
		return p, err
	}
	return p, os.WriteFile(file, content, 0o600)
}

// listen takes a port below those that the system gives to outgoing connections. While a server
// that restarts is away, one of these would be taken by anybody's connection; a client that asks
// for it again and again may even get the very port, and reach itself.
func listen() (net.Listener, error) {
	const first, last, attempts = 10_000, 32_000, 100
	var listener net.Listener
	var err error
	for range attempts {
		address := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first))
		if listener, err = net.Listen("tcp", address); err == nil {
			break
		}
	}
	return listener, err
}
