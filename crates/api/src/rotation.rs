//! Rotation of credentials: the type stored by the API server, and its parsed form (spec §1).

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::invalid::{InvalidSpec, word};
use super::word::Word;

/// Schedule on which the credentials are replaced, and the time for which the old ones remain
/// valid.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.mode != 'TimeBased' || self.intervalDays >= 7")
    .message("intervalDays must be at least 7 when mode is TimeBased")
    .field_path(".intervalDays"))]
#[serde(rename_all = "camelCase")]
pub struct RotationPolicy {
    /// Trigger of a rotation. `TimeBased` rotates at the interval. `Manual` rotates only on
    /// request, by the annotation `broker.stowage.io/rotate`. Defaults to `Manual`.
    #[serde(default)]
    pub mode: Word<RotationMode>,
    /// Number of days between two rotations, 1 to 3650, and at least 7 if `mode` is `TimeBased`.
    /// Defaults to 90.
    #[serde(default = "RotationPolicy::default_interval_days")]
    #[schemars(range(min = 1, max = 3650))]
    pub interval_days: i32,
    /// Number of seconds for which the old credentials remain valid after the new ones have been
    /// written to the Secret, 0 to 31536000. Defaults to 300.
    #[serde(default = "RotationPolicy::default_overlap_seconds")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub overlap_seconds: i32,
}

impl RotationPolicy {
    fn default_interval_days() -> i32 {
        90
    }

    fn default_overlap_seconds() -> i32 {
        300
    }
}

impl Default for RotationPolicy {
    fn default() -> Self {
        Self {
            mode: Word::default(),
            interval_days: Self::default_interval_days(),
            overlap_seconds: Self::default_overlap_seconds(),
        }
    }
}

/// Trigger of a rotation besides the rotate annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RotationMode {
    /// No other trigger.
    #[default]
    Manual,
    /// The age of the current credential.
    TimeBased,
}

/// Parsed rotation policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Number of days between two rotations; `None` if rotation is manual.
    pub interval_days: Option<u32>,
    /// Number of seconds for which the old credential remains valid.
    pub overlap_seconds: u32,
}

impl Rotation {
    /// Parses a policy.
    ///
    /// # Errors
    /// Returns an error if the mode is unknown, or a number is negative.
    pub(super) fn parse(policy: &RotationPolicy) -> Result<Self, InvalidSpec> {
        let number = |field, value: i32| u32::try_from(value).map_err(|error| InvalidSpec::of(field, &error));
        let mode = word("spec.rotationPolicy.mode", policy.mode)?;
        let days = number("spec.rotationPolicy.intervalDays", policy.interval_days)?;
        Ok(Self {
            interval_days: (mode == RotationMode::TimeBased).then_some(days),
            overlap_seconds: number("spec.rotationPolicy.overlapSeconds", policy.overlap_seconds)?,
        })
    }
}
