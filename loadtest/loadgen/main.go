// Command loadgen sends AdmissionReviews over HTTPS with keep-alive and prints one line of JSON:
// throughput, latencies, wrong answers, and the server's CPU and memory when given its process.
//
// Closed loop (the default): each connection sends its next request when it has its answer.
// Open loop (-rate): requests have scheduled times, and a latency is counted from the scheduled time,
// so that a server that stalls is charged for every request that it kept waiting.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

type options struct {
	url         string
	bodies      []body
	connections int
	duration    time.Duration
	requests    int
	rate        float64
	warmUp      int
	first       int // the body to begin with
}

func main() {
	var o options
	bodies := flag.String("body", "", "files with the bodies, comma separated; they are sent in turn; one that ends in .jsonl has a body in each line")
	expect := flag.String("expect", "", "allowed or denied for each body, comma separated (default: either)")
	pids := flag.String("pid", "", "the server's processes, comma separated: report CPU and memory")
	samples := flag.String("samples", "", "file for each request: when due, sent after, answered after, in microseconds")
	tag := flag.String("tag", "", "label copied into the output")
	rounds := flag.Int("rounds", 0, "compare servers: send -n requests to each -url in turn, so many times; prints each")
	apart := flag.Bool("apart", false, "with -rounds: the first -body is for the first -url, and so on")
	flag.StringVar(&o.url, "url", "", "where to send them; comma separated with -rounds")
	flag.IntVar(&o.connections, "c", 1, "connections, each with one request at a time")
	flag.DurationVar(&o.duration, "d", 10*time.Second, "how long to send")
	flag.IntVar(&o.requests, "n", 0, "how many to send (0: as many as -d allows)")
	flag.Float64Var(&o.rate, "rate", 0, "requests a second on a fixed schedule (0: closed loop)")
	flag.IntVar(&o.first, "skip", 0, "bodies that are not sent, or are sent last")
	flag.IntVar(&o.warmUp, "warm", 0, "requests before, not counted")
	flag.Parse()

	var err error
	if o.bodies, err = readBodies(*bodies, *expect); err != nil {
		fail(err)
	}
	if *rounds > 0 {
		taken, err := compare(o, o.url, *pids, *rounds, *apart)
		if err != nil {
			fail(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(taken); err != nil {
			fail(err)
		}
		return
	}
	client := newClient(o.connections)
	if o.warmUp > 0 {
		run(client, options{url: o.url, bodies: o.bodies, connections: o.connections, requests: o.warmUp, duration: time.Hour})
	}
	before, err := usageOf(*pids)
	if err != nil {
		fail(err)
	}
	measured := run(client, o)
	after, err := usageOf(*pids)
	if err != nil {
		fail(err)
	}
	if *samples != "" {
		if err := measured.write(*samples); err != nil {
			fail(err)
		}
	}
	report := measured.report()
	report["tag"], report["connections"], report["rate"] = *tag, o.connections, o.rate
	if *pids != "" {
		cpu := after.cpuSeconds - before.cpuSeconds
		report["server_cpu_ms_per_request"] = cpu * 1000 / float64(max(1, len(measured.latencies)))
		report["server_cores"] = cpu / measured.elapsed.Seconds()
		report["server_rss_mib"] = float64(after.rssBytes) / (1 << 20)
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		fail(err)
	}
	if measured.wrong > 0 || measured.failed > 0 {
		fmt.Fprintln(os.Stderr, "loadgen:", measured.firstFault)
		os.Exit(2)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "loadgen:", err)
	os.Exit(1)
}

// A body and what must be in its answer.
type body struct {
	content []byte
	want    [][]byte
}

func readBodies(files, expect string) ([]body, error) {
	var verdicts []string
	if expect != "" {
		verdicts = strings.Split(expect, ",")
	}
	var bodies []body
	for i, file := range strings.Split(files, ",") {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		verdict := ""
		if expect != "" {
			if len(verdicts) <= i || (verdicts[i] != "allowed" && verdicts[i] != "denied") {
				return nil, fmt.Errorf("-expect needs allowed or denied for %s", file)
			}
			verdict = verdicts[i]
		}
		contents := [][]byte{content}
		if strings.HasSuffix(file, ".jsonl") {
			contents = bytes.Split(bytes.TrimSpace(content), []byte("\n"))
		}
		for _, each := range contents {
			one, err := readBody(each, verdict)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			bodies = append(bodies, one)
		}
	}
	return bodies, nil
}

func readBody(content []byte, verdict string) (body, error) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.Unmarshal(content, &review); err != nil {
		return body{}, err
	}
	one := body{content: content, want: [][]byte{fmt.Appendf(nil, `"uid":%q`, review.Request.UID)}}
	if verdict != "" {
		one.want = append(one.want, fmt.Appendf(nil, `"allowed":%t`, verdict == "allowed"))
	}
	return one, nil
}
