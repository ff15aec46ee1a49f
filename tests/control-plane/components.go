// Room: components.
//
// The parts of a Kubernetes control plane that this binary can become. Each
// runs as a process of its own, chosen by argv[0] or the first argument,
// because the parts install process-wide signal handlers and flags, and
// because fault tests want to kill, pause and restart them one by one.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

// components maps the name a process is started under to what it runs; the
// arguments exclude that name.
var components = map[string]func(arguments []string) int{
	"etcd":                    runEtcd,
	"kube-apiserver":          func(a []string) int { return runCobra(apiserver.NewAPIServerCommand(), a) },
	"kube-controller-manager": func(a []string) int { return runCobra(manager.NewControllerManagerCommand(), a) },
	"kube-scheduler":          func(a []string) int { return runCobra(scheduler.NewSchedulerCommand(), a) },
	"kwok":                    runKwok,
	"kubectl":                 runKubectl,
}

// runCobra gives a component the arguments it would have as a program.
func runCobra(command *cobra.Command, arguments []string) int {
	os.Args = append([]string{command.Name()}, arguments...)
	command.SetArgs(arguments)
	return cli.Run(command)
}

func runKubectl(arguments []string) int {
	os.Args = append([]string{"kubectl"}, arguments...)
	command := kubectl.NewDefaultKubectlCommand()
	command.SetArgs(arguments)
	if err := cli.RunNoErrOutput(command); err != nil {
		kubectlutil.CheckErr(err)
		return 1
	}
	return 0
}

// runKwok starts the simulated kubelet.
//
// The Kubernetes packages linked into this binary register a global --version
// flag, on which kwok's own would panic; hence the fresh flag set.
func runKwok(arguments []string) int {
	os.Args = append([]string{"kwok"}, arguments...)
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx, stop := signalContext(context.Background())
	defer stop()
	ctx, logger := kwoklog.InitFlags(ctx, flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		_, _ = flags.Usage, logger
		fmt.Fprintln(os.Stderr, "kwok: failed to read flags:", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	command.SetArgs(arguments)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("kwok failed", err)
		return 1
	}
	return 0
}
