package bmc

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/common"

	"github.com/nodefence/nodefence/fencing"
)

// redfishStates are Redfish's words, as bmclib passes them on.
var redfishStates = map[string]fencing.PowerState{
	"On": fencing.On, "Off": fencing.Off, "PoweringOn": fencing.PoweringOn, "PoweringOff": fencing.PoweringOff,
	"Paused": fencing.Suspended,
}

// states are the words of each driver. They are compared whole and exactly;
// bmclib passes on whatever a controller says, the empty word included.
var states = map[string]map[string]fencing.PowerState{
	"gofish":  redfishStates,
	"dell":    redfishStates,
	"openbmc": redfishStates,
}

func driverNames() []string { return slices.Sorted(maps.Keys(states)) }

// parseState is the meaning of a driver's word; Unknown for any other.
func parseState(driver, word string) fencing.PowerState { return states[driver][word] }

// notReady are the messages that mean: come again, whatever the status. The last
// part of a MessageId counts, exactly.
var notReady = []string{"SWC0700", "RAC0218", "ResourceNotReadyRetry", "ServiceTemporarilyUnavailable"}

// parseRefusal is the meaning of an answer that is no success, and its words.
func parseRefusal(e *common.Error) (fencing.FailureKind, string) {
	if e.Code == codeNoObject {
		return fencing.Malformed, e.Message
	}
	words := fmt.Sprintf("HTTP %d", e.HTTPReturnedStatusCode)
	if len(e.ExtendedInfos) > 0 {
		id := e.ExtendedInfos[0].MessageID
		words = fmt.Sprintf("%s (%s: %s)", words, id, e.ExtendedInfos[0].Message)
		if slices.Contains(notReady, id[strings.LastIndexByte(id, '.')+1:]) {
			return fencing.Busy, words
		}
	}
	switch e.HTTPReturnedStatusCode {
	case http.StatusUnauthorized:
		return fencing.Unauthorized, words
	case http.StatusForbidden:
		return fencing.Forbidden, words
	case http.StatusNotFound:
		return fencing.NotFound, words
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return fencing.Busy, words
	}
	return fencing.Failed, words
}

// advice is what a person can do about a failure, where its words do not say.
var advice = map[fencing.FailureKind]string{
	fencing.Unauthorized: "check name and password",
	fencing.Forbidden:    "the account lacks the privilege, or is locked",
	fencing.NotFound:     "the controller may still build its inventory, or is not of this driver's kind",
	fencing.Busy:         "it asks to come again later",
	fencing.Malformed:    "nothing is concluded from it; read again, or use the driver redfish or ipmi",
}
