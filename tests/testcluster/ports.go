package main

import (
	"encoding/json"
	"errors"
	"io/fs"
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
		listener, err := net.Listen("tcp", "127.0.0.1:0")
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
