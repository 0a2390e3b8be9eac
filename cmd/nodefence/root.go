package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "nodefence",
		Short: "Fencing for Kubernetes: proves that a silent node's machine is off, then lets its workloads move",
		Long: `nodefence watches for nodes that fall silent, asks their machines out of band
(BMCs, clouds, hypervisors) whether they are really off, and only with proof
sets the taint node.kubernetes.io/out-of-service, so that Kubernetes moves the
node's pods and volumes. In doubt it does nothing and says so.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newControllerCommand(), newCheckCommand(), newVersionCommand(), newSimulateCommand())
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			revision := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = " (" + s.Value + ")"
					}
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "nodefence %s%s %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
