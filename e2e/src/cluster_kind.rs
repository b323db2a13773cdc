//! Kinds of cluster, by which a scenario decides if it can be played.

use clap::ValueEnum;

/// Kind of cluster that scenarios are played on.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ClusterKind {
    /// kind clusters created for the run, with the operator's image, and with simulated stores and
    /// fault proxies as pods.
    Kind,
    /// Control planes of etcd, kube-apiserver and kube-controller-manager, started for the run,
    /// with simulated stores.
    ControlPlane,
    /// An existing cluster with an existing store.
    Existing,
}
