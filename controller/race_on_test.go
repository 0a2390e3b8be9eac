//go:build race

package controller_test

// raceDetector tells whether the tests run with it, which makes them much slower.
const raceDetector = true
