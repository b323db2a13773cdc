//! Labels of the metrics. Their value sets are closed.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

use crate::plan::Trigger;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ControllerLabels {
    pub(super) controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct QueueLabels {
    pub(super) name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResultLabels {
    pub(super) controller: &'static str,
    pub(super) result: PassResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct UpstreamLabels {
    pub(super) backend: String,
    pub(super) operation: &'static str,
    pub(super) result: CallResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PolicyLabels {
    pub(super) policy: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct LeaderLabels {
    pub(super) name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TriggerLabels {
    pub(super) trigger: Trigger,
}

/// Label of everything that is counted by backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct BackendLabels {
    pub(crate) backend: String,
}

/// The result of a pass, as controller-runtime names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PassResult {
    /// Nothing is left to do until something changes.
    Success,
    /// Another pass is due at a known time.
    RequeueAfter,
    /// Something failed; another pass follows after a backoff.
    Error,
}

/// The result of a call to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CallResult {
    Success,
    /// 404, which is a regular answer to most calls.
    NotFound,
    /// 409, likewise.
    Conflict,
    Denied,
    Throttled,
    Unsupported,
    Failed,
    NoAnswer,
}

macro_rules! label_value {
    ($type:ty { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl EncodeLabelValue for $type {
            fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
                let word = match self { $(Self::$variant => $word),+ };
                EncodeLabelValue::encode(&word, encoder)
            }
        }
    };
}

label_value!(PassResult { Success => "success", RequeueAfter => "requeue_after", Error => "error" });
label_value!(CallResult {
    Success => "success",
    NotFound => "not_found",
    Conflict => "conflict",
    Denied => "denied",
    Throttled => "throttled",
    Unsupported => "unsupported",
    Failed => "failed",
    NoAnswer => "no_answer",
});
label_value!(Trigger {
    Interval => "interval",
    Request => "request",
    Repair => "repair",
    Move => "move",
    Revocation => "revocation",
    Entry => "entry",
});

impl CallResult {
    pub(super) const ALL: [Self; 8] = [
        Self::Success,
        Self::NotFound,
        Self::Conflict,
        Self::Denied,
        Self::Throttled,
        Self::Unsupported,
        Self::Failed,
        Self::NoAnswer,
    ];
}
