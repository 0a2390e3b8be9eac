package ipmibmc

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/bougou/go-ipmi/pkg/command/chassis"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/nodefence/nodefence/test/lab"
)

// Completion codes, from the IPMI specification, table 5-2.
const (
	codeNodeBusy     types.CompletionCode = 0xC0
	codeNotInState   types.CompletionCode = 0xD5
	codeUnspecified  types.CompletionCode = 0xFF
	codeOutOfRange   types.CompletionCode = 0xC9
	codeDataTooShort types.CompletionCode = 0xC7
)

// register puts the machine's own commands in place of the library's, which
// know neither restore policy nor who asks.
func (b *BMC) register(reg *handlers.Registry) {
	reg.RegisterFunc(types.CommandGetChassisStatus, b.faulty(b.chassisStatus))
	reg.RegisterFunc(types.CommandChassisControl, b.faulty(b.chassisControl))
	reg.RegisterFunc(types.CommandGetSystemRestartCause, b.faulty(b.restartCause))
	reg.RegisterFunc(types.CommandGetPOHCounter, b.faulty(b.powerOnTime))
	reg.RegisterFunc(types.CommandGetSystemGUID, b.systemGUID)
}

type handler = func(context.Context, *handlers.HandlerContext, []byte) ([]byte, types.CompletionCode, error)

// faulty fails a command while the controller is not ready.
func (b *BMC) faulty(h handler) handler {
	return func(ctx context.Context, hctx *handlers.HandlerContext, req []byte) ([]byte, types.CompletionCode, error) {
		switch f := b.Faults(); {
		case f.Booting:
			return nil, codeUnspecified, nil
		case f.Busy:
			return nil, codeNodeBusy, nil
		}
		return h(ctx, hctx, req)
	}
}

func (b *BMC) chassisStatus(context.Context, *handlers.HandlerContext, []byte) ([]byte, types.CompletionCode, error) {
	f, st := b.Faults(), b.machine.State()
	r := chassis.GetChassisStatusResponse{
		// One bit cannot say more: whatever is not off is on.
		PowerIsOn:            (st.Power != lab.Off || f.ReadsOn) && !f.ReadsOff && !f.OtherMachine,
		PowerFault:           f.PowerFault,
		PowerControlFault:    f.PowerFault,
		PowerRestorePolicy:   restorePolicy(st.Restore),
		LastPowerOnByCommand: b.onByCommand(),
		ACFailed:             !st.Mains,
	}
	data := r.Pack()
	switch {
	case f.EmptyReply:
		data = nil
	case f.ShortReply:
		data = data[:1]
	}
	return data, types.CodeOK, nil
}

func restorePolicy(p lab.RestorePolicy) chassis.PowerRestorePolicy {
	switch p {
	case lab.AlwaysOn:
		return chassis.PowerRestorePolicyAlwaysOn
	case lab.LastState:
		return chassis.PowerRestorePolicyPrevious
	}
	return chassis.PowerRestorePolicyAlwaysOff
}

func (b *BMC) onByCommand() bool {
	e, ok := b.machine.History().Last(lab.PoweredOn)
	return ok && len(e.By) > 5 && e.By[:5] == "ipmi:"
}

func (b *BMC) chassisControl(_ context.Context, hctx *handlers.HandlerContext, req []byte) ([]byte, types.CompletionCode, error) {
	if len(req) < 1 {
		return nil, codeDataTooShort, nil
	}
	switch f := b.Faults(); {
	case f.IgnoresControl || f.OtherMachine:
		return nil, types.CodeOK, nil
	case f.RefusesControl:
		return nil, codeNotInState, nil
	}
	by := "ipmi:"
	if hctx.User != nil {
		by += hctx.User.Name
	}
	var err error
	switch chassis.ChassisControl(req[0] & 0x0f) {
	case chassis.ChassisControlPowerDown:
		err = b.machine.ForceOff(by)
	case chassis.ChassisControlPowerUp:
		err = b.machine.PowerOn(by)
	case chassis.ChassisControlPowerCycle:
		err = b.machine.PowerCycle(by, b.cfg.CycleOff)
	case chassis.ChassisControlHardReset:
		// Many controllers answer OK to the reset of a machine that is off, and
		// nothing happens: so no conclusion can be drawn from the answer.
		_ = b.machine.Reset(by)
	case chassis.ChassisControlSoftShutdown:
		err = b.machine.GracefulShutdown(by)
	default:
		return nil, codeOutOfRange, nil
	}
	if err != nil {
		return nil, codeNotInState, nil
	}
	return nil, types.CodeOK, nil
}

func (b *BMC) restartCause(context.Context, *handlers.HandlerContext, []byte) ([]byte, types.CompletionCode, error) {
	const unknown, command, alwaysOn, previous = 0, 1, 6, 7
	cause := byte(unknown)
	switch st := b.machine.State(); {
	case st.LastOnBy == "restore policy" && st.Restore == lab.AlwaysOn:
		cause = alwaysOn
	case st.LastOnBy == "restore policy":
		cause = previous
	case b.onByCommand():
		cause = command
	}
	return []byte{cause, lanChannel}, types.CodeOK, nil
}

// powerOnTime counts minutes since the machine was switched on. Real ones count
// over the machine's life; only a change can be concluded from either.
func (b *BMC) powerOnTime(context.Context, *handlers.HandlerContext, []byte) ([]byte, types.CompletionCode, error) {
	minutes := uint32(b.machine.State().OnFor / time.Minute)
	return binary.LittleEndian.AppendUint32([]byte{1}, minutes), types.CodeOK, nil
}

func (b *BMC) systemGUID(context.Context, *handlers.HandlerContext, []byte) ([]byte, types.CompletionCode, error) {
	guid := b.machine.UUID().Swapped()
	if b.Faults().ZeroGUID {
		guid = lab.UUID{}
	}
	if b.Faults().OtherMachine {
		guid[15] ^= 0xFF
	}
	return guid[:], types.CodeOK, nil
}
