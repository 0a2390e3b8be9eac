// Package peers finds the programs that nodefence's tests run against and that
// nodefence did not write: OpenIPMI's simulator, ipmitool, fence agents,
// Redfish clients, Alertmanager.
//
// A test that needs one says so in its first line:
//
//	sim := peers.Require(t, "ipmi_sim")
//
// A missing peer is installed from its Debian package where that may be done
// (root, apt-get, and not forbidden by NODEFENCE_INSTALL=no). Where it cannot,
// the test is skipped in words that can be searched for, and its name is
// appended to the file that NODEFENCE_NOT_RUN names, so that a run's summary
// can tell what it did not test. Under CI=true a missing peer is a failure: a
// pipeline must not go green because its peers are gone.
//
// What must not live here: how a peer is run. That is with its simulator or
// test.
package peers
