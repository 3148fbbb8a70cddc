package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The API server's own limit for a webhook is 30 s; what takes longer has failed.
const answerWithin = 30 * time.Second

// From so many samples on the 99.9th percentile is more than the slowest few.
const samplesForP999 = 10000

type measurement struct {
	latencies  []time.Duration
	samples    []sample // as they were scheduled, for whoever asks for each
	started    time.Time
	elapsed    time.Duration
	wrong      int64
	failed     int64
	bytes      int64
	firstFault string
}

// sample is one request: when it was due, and how much later it was sent and was answered.
type sample struct {
	due, late, latency time.Duration
}

func newClient(connections int) *http.Client {
	return &http.Client{Timeout: answerWithin, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, // the certificate is not what is measured
		MaxIdleConnsPerHost: connections,
		MaxConnsPerHost:     connections,
		DisableCompression:  true,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1, as the API server
	}}
}

// run sends until the requests or the time are used up, and measures each.
func run(client *http.Client, o options) measurement {
	var (
		next, wrong, failed, received atomic.Int64
		fault                         sync.Once
		m                             measurement
		workers                       sync.WaitGroup
	)
	samples := make([][]sample, o.connections)
	started := time.Now()
	end := started.Add(o.duration)
	for worker := range o.connections {
		workers.Go(func() {
			for {
				i := next.Add(1) - 1
				if o.requests > 0 && i >= int64(o.requests) {
					return
				}
				begin := time.Now()
				if o.rate > 0 {
					begin = started.Add(time.Duration(float64(i) / o.rate * float64(time.Second)))
					time.Sleep(time.Until(begin))
				}
				if begin.After(end) {
					return
				}
				late := time.Since(begin)
				size, problem, transport := send(client, o.url, o.bodies[(i+int64(o.first))%int64(len(o.bodies))])
				samples[worker] = append(samples[worker], sample{begin.Sub(started), late, time.Since(begin)})
				received.Add(int64(size))
				if problem != "" {
					fault.Do(func() { m.firstFault = problem })
					if transport {
						failed.Add(1)
					} else {
						wrong.Add(1)
					}
				}
			}
		})
	}
	workers.Wait()
	m.started, m.elapsed = started, time.Since(started)
	m.samples = slices.Concat(samples...)
	slices.SortFunc(m.samples, func(a, b sample) int { return cmp.Compare(a.due, b.due) })
	for _, one := range m.samples {
		m.latencies = append(m.latencies, one.latency)
	}
	slices.Sort(m.latencies)
	m.wrong, m.failed, m.bytes = wrong.Load(), failed.Load(), received.Load()
	return m
}

// send posts one body. A problem is a wrong answer, or, with transport, no answer.
func send(client *http.Client, url string, b body) (size int, problem string, transport bool) {
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(b.content))
	if err != nil {
		return 0, err.Error(), true
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error(), true
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return len(answer), err.Error(), true
	}
	if response.StatusCode != http.StatusOK {
		return len(answer), fmt.Sprintf("%s: %.1000s", response.Status, answer), true
	}
	for _, want := range b.want {
		if !bytes.Contains(answer, want) {
			return len(answer), fmt.Sprintf("no %s in %.1000s", want, answer), false
		}
	}
	return len(answer), "", false
}

func (m measurement) report() map[string]any {
	count := len(m.latencies)
	report := map[string]any{
		"started_unix_s": float64(m.started.UnixMicro()) / 1e6,
		"requests":       count, "seconds": m.elapsed.Seconds(), "requests_per_second": float64(count) / m.elapsed.Seconds(),
		"p50_ms": m.percentile(0.50), "p90_ms": m.percentile(0.90), "p99_ms": m.percentile(0.99), "max_ms": m.percentile(1),
		"wrong": m.wrong, "failed": m.failed, "answer_bytes": m.bytes / int64(max(1, count)),
	}
	if count >= samplesForP999 {
		report["p999_ms"] = m.percentile(0.999)
	}
	return report
}

func (m measurement) percentile(p float64) float64 {
	if len(m.latencies) == 0 {
		return 0
	}
	at := min(len(m.latencies)-1, int(p*float64(len(m.latencies))))
	return float64(m.latencies[at].Microseconds()) / 1000
}

// write keeps each sample as a line of three numbers, in microseconds.
func (m measurement) write(file string) error {
	var lines bytes.Buffer
	for _, one := range m.samples {
		fmt.Fprintln(&lines, one.due.Microseconds(), one.late.Microseconds(), one.latency.Microseconds())
	}
	return os.WriteFile(file, lines.Bytes(), 0o644)
}
