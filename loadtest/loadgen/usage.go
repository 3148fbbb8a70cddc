package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Linux counts a process's CPU in hundredths of a second (USER_HZ), on every architecture.
const ticksPerSecond = 100

type usage struct {
	cpuSeconds float64
	rssBytes   int64
}

// usageOf sums user and system time, of children that have ended too, and resident memory of processes.
func usageOf(pids string) (usage, error) {
	var sum usage
	if pids == "" {
		return sum, nil
	}
	for _, pid := range strings.Split(pids, ",") {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return sum, err
		}
		// The command's name stands in parentheses and may hold anything; numbers follow it.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 22 {
			return sum, fmt.Errorf("/proc/%s/stat has %d fields", pid, len(fields))
		}
		for _, field := range fields[11:15] { // utime, stime, and those of children that have ended
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return sum, err
			}
			sum.cpuSeconds += ticks / ticksPerSecond
		}
		pages, err := strconv.ParseInt(fields[21], 10, 64)
		if err != nil {
			return sum, err
		}
		sum.rssBytes += pages * int64(os.Getpagesize())
	}
	return sum, nil
}
