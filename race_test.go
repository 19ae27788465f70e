//go:build race

package main

// raceEnabled tells whether these tests run under the race detector.
const raceEnabled = true
