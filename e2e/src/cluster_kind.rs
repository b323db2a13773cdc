//! The kinds of cluster, by which a scenario tells whether it can be played.

use clap::ValueEnum;

/// Where scenarios can run.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ClusterKind {
    /// Clusters that kind makes for this, with the operator's image, simulated stores and fault
    /// proxies as pods.
    Kind,
    /// Control planes of etcd, kube-apiserver and kube-controller-manager, started for this, with
    /// simulated stores.
    ControlPlane,
    /// A cluster that is there already, with a store that is there.
    Existing,
}
