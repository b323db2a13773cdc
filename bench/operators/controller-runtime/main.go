// An operator as kubebuilder makes them: a manager with leader election, and one controller with what the others have: a
// finalizer, an index, a predicate, owned objects by server-side apply, watched Secrets, a status, two recorders of events.
package main

import (
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// How long a leader is one without renewing, how long it tries to, and how often.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 6 * time.Second
	retryPeriod   = time.Second
)

func main() {
	if err := run(); err != nil {
		klog.Error(err, "the operator ends")
		os.Exit(1)
	}
}

func run() error {
	ctrl.SetLogger(klog.NewKlogr())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	addToScheme(scheme)
	namespace := os.Getenv("OPERATOR_NAMESPACE")
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "websites.example.org",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
	})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	websites := &Websites{
		Client:   manager.GetClient(),
		reader:   manager.GetAPIReader(),
		recorder: manager.GetEventRecorder(owner),
		// The face of before events.k8s.io, which most operators still write.
		before:    manager.GetEventRecorderFor("websites"),
		namespace: namespace,
	}
	if err := websites.setUp(ctx, manager); err != nil {
		return err
	}
	go func() {
		<-manager.Elected()
		klog.Info("elected")
	}()
	klog.Info("started")
	return manager.Start(ctx)
}
