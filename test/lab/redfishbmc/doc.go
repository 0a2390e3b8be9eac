// Package redfishbmc is a Redfish service over HTTPS on loopback, the
// management controller of one or several lab machines.
//
// It is written from DMTF's specification DSP0266 and its schema, as far as a
// fencing service meets it: service root, sessions and basic authentication,
// the ComputerSystem with its Reset action, Chassis and Manager. It is checked
// against clients that we did not write.
//
// Real controllers mislead in many ways. Each is a [Quirk] with a name and a
// line that says what kind of device does so; quirks may be combined and
// changed while the service runs:
//
//	bmc.Set(redfishbmc.PowerStateNull, redfishbmc.Slow(time.Second))
//
// quirks_http.go has those of the transport, quirks_resource.go those of what
// is said about a system, quirks_reset.go those of commands.
//
// What must not live here: what nodefence has to conclude from any of them.
package redfishbmc
