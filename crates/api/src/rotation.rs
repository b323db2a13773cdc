//! When credentials are replaced: as the API server stores it, and parsed (spec §1).

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::invalid::{InvalidSpec, word};
use super::word::Word;

/// When the credentials are replaced, and how long the old ones go on working.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.mode != 'TimeBased' || self.intervalDays >= 7")
    .message("intervalDays must be at least 7 when mode is TimeBased")
    .field_path(".intervalDays"))]
#[serde(rename_all = "camelCase")]
pub struct RotationPolicy {
    /// `TimeBased` rotates by itself, `Manual` only when the rotate annotation asks for it.
    #[serde(default)]
    pub mode: Word<RotationMode>,
    /// Days between two rotations; at least 7 when mode is TimeBased.
    #[serde(default = "RotationPolicy::default_interval_days")]
    #[schemars(range(min = 1, max = 3650))]
    pub interval_days: i32,
    /// Seconds for which the old credential works after the Secret was switched to the new one.
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

/// What starts a rotation besides the rotate annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RotationMode {
    /// Nothing.
    #[default]
    Manual,
    /// The age of the current credential.
    TimeBased,
}

/// When credentials are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Days between two rotations, if they come by themselves.
    pub interval_days: Option<u32>,
    /// Seconds for which the old credential goes on working.
    pub overlap_seconds: u32,
}

impl Rotation {
    /// Parses a policy.
    ///
    /// # Errors
    /// When its mode isn't known, or a number is none.
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
