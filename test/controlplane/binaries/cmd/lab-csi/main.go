// Command lab-csi is the controller side of the lab's CSI driver, for the real
// csi-attacher.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/nodefence/nodefence/test/controlplane/binaries/csidriver"
)

func main() {
	socket := flag.String("socket", "", "unix socket to serve on")
	ledger := flag.String("ledger", "", "file that each attach and detach is appended to, a JSON object a line")
	flag.Parse()
	if err := csidriver.ServeController(*socket, *ledger); err != nil {
		fmt.Fprintln(os.Stderr, "lab-csi:", err)
		os.Exit(1)
	}
	select {}
}
