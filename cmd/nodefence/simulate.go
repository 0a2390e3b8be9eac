package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/nodefence/nodefence/fencing/scenario"
)

func newSimulateCommand() *cobra.Command {
	verify := false
	cmd := &cobra.Command{
		Use:   "simulate [FILE ...]",
		Short: "Play scenario files through the decision core",
		Long: `Plays stories of a node and its machine in virtual time and prints each with the
transcript of what nodefence decides. It needs no cluster and touches nothing.
Without a file, or with -, it reads the standard input. docs/scenarios.md has the
commands.

Exit status: 0 when all were played; 2 when, with --verify, one went another way
than its file says; 1 when a file could not be read or has an error.`,
		Args: cobra.ArbitraryArgs,
		Example: `  nodefence simulate story.txt
  printf 'machine loses-power\nrun 2m\n----\n' | nodefence simulate`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				files = []string{"-"}
			}
			same := true
			for _, name := range files {
				ok, err := simulate(name, cmd.InOrStdin(), cmd.OutOrStdout())
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if verify && !ok {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s went another way than it says\n", name)
					same = false
				}
			}
			if !same {
				return exitStatus(exitFindings)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "fail when a story goes another way than its file says")
	return cmd
}

// simulate plays one file and tells whether it went as recorded.
func simulate(name string, stdin io.Reader, out io.Writer) (bool, error) {
	if name == "-" {
		return scenario.Run(stdin, out)
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return false, err
	}
	return scenario.Run(bytes.NewReader(body), out)
}
