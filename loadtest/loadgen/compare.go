package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// turn is what one server took for one round: the CPU of its whole process from round to round, so
// that what it does once its answers are out, while others are asked, counts too.
type turn struct {
	CPUMicroseconds float64 `json:"cpu_us"`
	// While it was asked itself: where turns differ in length, what a server does while others are
	// asked says nothing of requests.
	OwnMicroseconds float64 `json:"own_cpu_us"`
	P50             float64 `json:"p50_ms"`
	P99             float64 `json:"p99_ms"`
}

// compare sends each server a slice of requests at a time, in turn and on connections that stay:
// whatever the machine does meanwhile, it does to all of them. Another one begins each round, and
// the first round is not counted. With apart each of them has a body of its own; else each round goes on
// with the bodies where the one before it ended.
func compare(o options, targets, pids string, rounds int, apart bool) ([][]turn, error) {
	urls, clocks := strings.Split(targets, ","), strings.Split(pids, ",")
	if len(urls) != len(clocks) || o.requests == 0 {
		return nil, fmt.Errorf("-rounds needs -n, and a -pid for each -url")
	}
	if apart && len(urls) != len(o.bodies) {
		return nil, fmt.Errorf("-apart needs a -body for each -url")
	}
	clients := make([]*http.Client, len(urls))
	for i := range clients {
		clients[i] = newClient(o.connections)
	}
	taken := make([][]turn, rounds+1)
	before := make([]time.Duration, len(urls))
	for number := range taken {
		taken[number] = make([]turn, len(urls))
		for place := range urls {
			i := (number + place) % len(urls)
			one := o
			one.url = urls[i]
			one.first = o.first + number*o.requests
			if apart {
				one.bodies = o.bodies[i : i+1]
			}
			began, err := cpuOf(clocks[i])
			if err != nil {
				return nil, err
			}
			measured := run(clients[i], one)
			ended, err := cpuOf(clocks[i])
			if err != nil {
				return nil, err
			}
			if measured.wrong > 0 || measured.failed > 0 {
				return nil, fmt.Errorf("%s: %s", urls[i], measured.firstFault)
			}
			own := float64((ended - began).Nanoseconds()) / 1000 / float64(o.requests)
			taken[number][i] = turn{OwnMicroseconds: own, P50: measured.percentile(0.50), P99: measured.percentile(0.99)}
		}
		for i, pid := range clocks {
			now, err := cpuOf(pid)
			if err != nil {
				return nil, err
			}
			taken[number][i].CPUMicroseconds = float64((now - before[i]).Nanoseconds()) / 1000 / float64(o.requests)
			before[i] = now
		}
	}
	return taken[1:], nil
}

// cpuOf reads the CPU clock of a process, all its threads together, which counts in nanoseconds
// where /proc counts in hundredths of a second (clock_getcpuclockid(3)).
func cpuOf(text string) (time.Duration, error) {
	pid, err := strconv.Atoi(text)
	if err != nil {
		return 0, err
	}
	const clockOfProcess = 2 // CPUCLOCK_SCHED
	id := (^pid)<<3 | clockOfProcess
	var now syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		return 0, fmt.Errorf("CPU clock of %d: %w", pid, errno)
	}
	return time.Duration(now.Nano()), nil
}
