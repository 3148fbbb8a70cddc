// Command provider is a provider of external data for benchmarks: over mutual TLS 1.3, each answer so
// many milliseconds late. It takes little CPU of its own, so that a request to it takes its delay.
//
// It prints its port. Every key has a value, "KEY is known"; a request with one that begins with
// "hang/" is never answered.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// As Gatekeeper bounds nothing here, enough for any benchmark's keys.
const bodyBytesMax = 1 << 20

type item struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type response struct {
	Idempotent bool   `json:"idempotent"`
	Items      []item `json:"items"`
}

type answer struct {
	Version  string   `json:"apiVersion"`
	Kind     string   `json:"kind"`
	Response response `json:"response"`
}

// answered answers a request once the delay has passed since it was read.
func answered(delay time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		var asked struct {
			Request struct {
				Keys []string `json:"keys"`
			} `json:"request"`
		}
		if err := json.NewDecoder(io.LimitReader(r.Body, bodyBytesMax)).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		told := answer{"externaldata.gatekeeper.sh/v1beta1", "ProviderResponse", response{Idempotent: true}}
		for _, key := range asked.Request.Keys {
			if strings.HasPrefix(key, "hang/") {
				<-r.Context().Done()
				return
			}
			told.Response.Items = append(told.Response.Items, item{key, key + " is known"})
		}
		body, err := json.Marshal(told)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		time.Sleep(delay - time.Since(began))
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}
}

func serve(certificate, clientCA string, delay time.Duration) error {
	pair, err := tls.LoadX509KeyPair(certificate, certificate)
	if err != nil {
		return err
	}
	authorities, err := os.ReadFile(clientCA)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return errors.New("no certificate in " + clientCA)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := http.Server{
		Handler: answered(delay),
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{pair},
			ClientCAs:    pool,
			ClientAuth:   tls.RequireAndVerifyClientCert,
			NextProtos:   []string{"http/1.1"},
		},
		ErrorLog: log.New(io.Discard, "", 0), // clients that leave are none of its faults
	}
	return server.ServeTLS(listener, "", "")
}

func main() {
	certificate := flag.String("certificate", "", "chain and key in one file")
	clientCA := flag.String("client-ca", "", "callers must have a certificate of these")
	delay := flag.Duration("delay", 0, "from a request to its answer")
	flag.Parse()
	fmt.Fprintln(os.Stderr, "provider:", serve(*certificate, *clientCA, *delay))
	os.Exit(1)
}
