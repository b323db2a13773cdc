//! Faults that only Stowage has: edits by people, the gateway's lag, clocks that are off.

use faults::{Application, Calls, KubeVerb, Lasts, Parameter, Row, S3Operation, Vocabulary, words};

/// A change by users and by programs other than the operator to something that belongs to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StowageFault {
    /// A wall clock is off from the beginning of the run to its end.
    Skew {
        /// Actor that has the clock.
        actor: Actor,
        /// Seconds that the clock is ahead; negative if behind.
        seconds: i32,
    },
    /// From this write on, the gateway observes each change of a Secret this late, for the rest of
    /// the run.
    Lag {
        /// Delay in seconds.
        seconds: u32,
    },
    /// Just before the call, the claim that it concerns is deleted by hand, with its finalizers
    /// removed, and created again: same name and spec, new UID.
    Recreate,
    /// Just before the call, a third party changes an object that belongs to the claim that the
    /// call concerns.
    Tamper(Tampering),
    /// Just before the call, the user edits the claim that the call concerns.
    Edit(Edit),
    /// Just before the call, the bucket is deleted and created again for another claim by the same
    /// account, with one object, and tags that name that claim.
    Usurp {
        /// True if that claim has not stored any object yet.
        empty: bool,
    },
}

words! {
    /// An actor with a wall clock that may be off.
    Actor {
        /// The operator.
        Operator = "operator",
        /// The gateway, which expires keys by it.
        Gateway = "gateway",
        /// The store.
        Store = "store",
    }
}

words! {
    /// A change by a third party. It does nothing if the object does not exist.
    Tampering {
        /// Overwrites the key in the consumer Secret.
        EditConsumer = "edit-consumer",
        /// Writes the highest possible generation into the consumer Secret, with the id that
        /// follows from it.
        ForgeConsumer = "forge-consumer",
        /// Removes all data from the consumer Secret.
        EmptyConsumer = "empty-consumer",
        /// Deletes the consumer Secret.
        DeleteConsumer = "delete-consumer",
        /// Removes all labels from the consumer Secret.
        RelabelConsumer = "relabel-consumer",
        /// Removes the owner references from the consumer Secret.
        DisownConsumer = "disown-consumer",
        /// Removes all labels from the claim's internal Secrets.
        RelabelInternal = "relabel-internal",
        /// Adds a finalizer to the claim's internal Secrets, as a backup tool does, and removes it
        /// five minutes later.
        KeepInternal = "keep-internal",
        /// Deletes the claim's credentials.
        DeleteCredential = "delete-credential",
        /// Deletes the claim's bucket record.
        DeleteRecord = "delete-record",
        /// Removes all finalizers from the claim.
        StripFinalizers = "strip-finalizers",
    }
}

words! {
    /// An edit of a claim by its user.
    Edit {
        /// `deletionPolicy: Retain` without `forceDelete`.
        Retain = "retain",
        /// `deletionPolicy: Delete`.
        Delete = "delete",
        /// `deletionPolicy: Delete` with `forceDelete`.
        Force = "force",
        /// `forceDelete: false`.
        NoForce = "no-force",
        /// A new value of the annotation that requests a rotation.
        Rotate = "rotate",
        /// A new value of the annotation that revokes every key.
        Revoke = "revoke",
        /// Another quota.
        Quota = "quota",
        /// Another name of the consumer Secret.
        Rename = "rename",
        /// Adds the annotation that pauses the claim.
        Pause = "pause",
        /// Removes the annotation that pauses the claim.
        Resume = "resume",
    }
}

const WRITES: Calls =
    Calls::kube(KubeVerb::is_write, "Kubernetes writes (create, update, patch, delete, deletecollection)");
const ON_BUCKETS: Calls = Calls::s3(S3Operation::is_on_bucket, "S3 calls on a bucket");

impl Vocabulary for StowageFault {
    fn all() -> Vec<Self> {
        // If the operator is further behind the API server, a rotation waits that much longer.
        let operator = [3600, -45].map(|seconds| Self::Skew { actor: Actor::Operator, seconds });
        let gateway = [45, -45].map(|seconds| Self::Skew { actor: Actor::Gateway, seconds });
        let store = [3600, -3600].map(|seconds| Self::Skew { actor: Actor::Store, seconds });
        let mut all: Vec<Self> = operator.into_iter().chain(gateway).chain(store).collect();
        all.extend([Self::Lag { seconds: 20 }, Self::Recreate]);
        all.extend(Tampering::ALL.map(Self::Tamper));
        all.extend(Edit::ALL.map(Self::Edit));
        all.extend([false, true].map(|empty| Self::Usurp { empty }));
        all
    }

    fn row(self) -> Row<Self> {
        match self {
            Self::Skew { actor, seconds } => Row::new("skew", Calls::ANY, Application::World)
                .with(Parameter::WordAndSigned { word: actor.word(), seconds, with: Self::skew })
                .lasting(Lasts::WholeRun),
            Self::Lag { seconds } => Row::new("lag", WRITES, Application::World)
                .with(Parameter::Seconds { seconds, with: |seconds| Self::Lag { seconds } })
                .lasting(Lasts::Beyond),
            Self::Recreate => Row::new("recreate", Calls::ANY, Application::World),
            Self::Tamper(what) => {
                let row = Row::new("tamper", Calls::ANY, Application::World).with(Parameter::Word(what.word()));
                if what == Tampering::KeepInternal { row.lasting(Lasts::Beyond) } else { row }
            }
            Self::Edit(what) => Row::new("edit", Calls::ANY, Application::World).with(Parameter::Word(what.word())),
            Self::Usurp { empty: false } => Row::new("usurp", ON_BUCKETS, Application::World),
            Self::Usurp { empty: true } => {
                Row::new("usurp", ON_BUCKETS, Application::World).with(Parameter::Word("empty"))
            }
        }
    }
}

impl StowageFault {
    fn skew(actor: &str, seconds: i32) -> Option<Self> {
        let actor = Actor::ALL.into_iter().find(|known| known.word() == actor)?;
        Some(Self::Skew { actor, seconds })
    }
}

#[cfg(test)]
mod tests {
    use crate::effects::Fault;

    #[test]
    fn the_guide_has_every_fault_with_what_may_stand_in_its_brackets() {
        let guide = include_str!("../../../docs/reference/faults.md");
        let forms = Fault::forms(None);
        // In a Markdown table, `|` is escaped with a backslash.
        let shown = |form: &&str| guide.contains(&format!("`{}`", form.replace('|', r"\|")));
        let missing: Vec<&str> = forms.split(", ").filter(|form| !shown(form)).collect();
        assert!(missing.is_empty(), "docs/reference/faults.md does not have {}", missing.join(", "));
    }
}
