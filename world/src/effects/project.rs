//! The faults that only Stowage knows: people's hands, the gateway's lag, clocks that are off.

use faults::{Application, Calls, KubeVerb, Lasts, Parameter, Row, S3Operation, Vocabulary, words};

/// What is done to what belongs to a claim, by people and by programs other than the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StowageFault {
    /// Somebody's wall clock is off, from the beginning of the run to its end.
    Skew {
        /// Whose.
        actor: Actor,
        /// Seconds that it is ahead; negative ones behind.
        seconds: i32,
    },
    /// From this write on, the gateway hears of each change of a Secret this late, for the rest of
    /// the run.
    Lag {
        /// Seconds that it is late.
        seconds: u32,
    },
    /// Right before the call, the claim that it concerns is deleted by hand, its finalizers
    /// stripped, and made again: same name and spec, new UID.
    Recreate,
    /// Right before the call, a third party lays hands on what belongs to the claim that the call
    /// concerns.
    Tamper(Tampering),
    /// Right before the call, its user edits the claim that the call concerns.
    Edit(Edit),
    /// Right before the call, the bucket is deleted and made again for another claim by the same
    /// account: it holds an object, and tags that name that claim.
    Usurp {
        /// Whether that claim has put nothing into it yet.
        empty: bool,
    },
}

words! {
    /// Who has a wall clock that may be off.
    Actor {
        /// The operator.
        Operator = "operator",
        /// The gateway, which ends keys by it.
        Gateway = "gateway",
        /// The store.
        Store = "store",
    }
}

words! {
    /// What a third party does. Where there is no such object it does nothing.
    Tampering {
        /// Overwrites the key in the consumer Secret.
        EditConsumer = "edit-consumer",
        /// Has the consumer Secret tell of the last generation that there can be, with the id that
        /// follows from it.
        ForgeConsumer = "forge-consumer",
        /// Takes all data out of the consumer Secret.
        EmptyConsumer = "empty-consumer",
        /// Deletes the consumer Secret.
        DeleteConsumer = "delete-consumer",
        /// Takes all labels off the consumer Secret.
        RelabelConsumer = "relabel-consumer",
        /// Takes the owner references off the consumer Secret.
        DisownConsumer = "disown-consumer",
        /// Takes all labels off the claim's internal Secrets.
        RelabelInternal = "relabel-internal",
        /// Puts a finalizer on the claim's internal Secrets, as a backup tool does, and takes it
        /// off five minutes later.
        KeepInternal = "keep-internal",
        /// Deletes the claim's internal Secrets that hold credentials.
        DeleteCredential = "delete-credential",
        /// Deletes the claim's bucket record.
        DeleteRecord = "delete-record",
        /// Takes all finalizers off the claim.
        StripFinalizers = "strip-finalizers",
    }
}

words! {
    /// What the user of a claim changes in it.
    Edit {
        /// `deletionPolicy: Retain`, without force.
        Retain = "retain",
        /// `deletionPolicy: Delete`.
        Delete = "delete",
        /// `deletionPolicy: Delete` with `forceDelete`.
        Force = "force",
        /// `forceDelete: false`.
        NoForce = "no-force",
        /// A new value of the annotation that asks for a rotation.
        Rotate = "rotate",
        /// A new value of the annotation that revokes every key.
        Revoke = "revoke",
        /// Another quota.
        Quota = "quota",
        /// Another name for the consumer Secret.
        Rename = "rename",
        /// The annotation that pauses the claim.
        Pause = "pause",
        /// That annotation gone.
        Resume = "resume",
    }
}

const WRITES: Calls =
    Calls::kube(KubeVerb::is_write, "Kubernetes writes (create, update, patch, delete, deletecollection)");
const ON_BUCKETS: Calls = Calls::s3(S3Operation::is_on_bucket, "S3 calls on a bucket");

impl Vocabulary for StowageFault {
    fn all() -> Vec<Self> {
        // An operator that is behind the API server by more lets a rotation wait for as long.
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
        // In a table, `|` is written with a backslash.
        let shown = |form: &&str| guide.contains(&format!("`{}`", form.replace('|', r"\|")));
        let missing: Vec<&str> = forms.split(", ").filter(|form| !shown(form)).collect();
        assert!(missing.is_empty(), "docs/reference/faults.md does not have {}", missing.join(", "));
    }
}
