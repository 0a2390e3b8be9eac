package redfishbmc

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/nodefence/nodefence/test/lab"
)

// action carries out ComputerSystem.Reset, the only action there is.
func (c *call) action() {
	if c.sys == nil || !strings.HasSuffix(c.path, resetSuffix) {
		c.notFound()
		return
	}
	if c.r.Method != http.MethodPost {
		c.methodNotAllowed()
		return
	}
	if c.account.Role != Administrator && c.account.Role != Operator {
		c.forbidden()
		return
	}
	if m := c.r.Header.Get("If-Match"); m != "" && m != "*" && m != c.system(c.sys)["@odata.etag"] {
		c.preconditionFailed()
		return
	}
	var body struct{ ResetType string }
	if err := json.NewDecoder(io.LimitReader(c.r.Body, 1<<16)).Decode(&body); err != nil {
		c.fail(http.StatusBadRequest, "Base.1.8.MalformedJSON", "The request body is malformed JSON.")
		return
	}
	c.b.mu.Lock()
	c.log.ResetType = body.ResetType
	c.b.mu.Unlock()
	if !slices.Contains(resetTypes, any(body.ResetType)) {
		c.fail(http.StatusBadRequest, "Base.1.8.ActionParameterNotSupported", "The value "+body.ResetType+" of the parameter ResetType is not supported.")
		return
	}
	for _, q := range c.b.active(c.area) {
		if q.reset != nil && q.reset(c, body.ResetType) {
			return
		}
	}
	if err := c.apply(body.ResetType); err != nil {
		c.refuse(http.StatusConflict, err)
		return
	}
	c.sendNothing()
}

// apply does to the machine what was asked.
func (c *call) apply(resetType string) error {
	m, by := c.sys.machine(), "redfish:"+c.account.Name
	switch resetType {
	case "On":
		return m.PowerOn(by)
	case "ForceOff":
		return m.ForceOff(by)
	case "GracefulShutdown":
		return m.GracefulShutdown(by)
	case "PowerCycle":
		return m.PowerCycle(by, c.b.cfg.CycleOff)
	case "ForceRestart", "GracefulRestart":
		return m.Reset(by)
	}
	return errors.New("redfishbmc: unknown reset type")
}

// refuse says that the system is not in a state for the command.
func (c *call) refuse(status int, err error) {
	id := "Base.1.8.ResourceInUse"
	if errors.Is(err, lab.ErrOff) {
		id = "Base.1.8.ResourceInStandby"
	}
	c.fail(status, id, "The request could not be performed because the resource is not in the required state.")
}

func (c *call) preconditionFailed() {
	c.fail(http.StatusPreconditionFailed, "Base.1.8.PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
}
