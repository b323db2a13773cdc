//! Object lock: retention, legal hold, and their enforcement.

use jiff::{SignedDuration, Timestamp};
use s3s::{S3ErrorCode, S3Result};
use serde::{Deserialize, Serialize};

use super::errors::{invalid_argument, refuse_because};

/// Strictness of a retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionMode {
    /// Can be bypassed by requests with `x-amz-bypass-governance-retention`.
    Governance,
    /// Cannot be shortened or removed before it ends.
    Compliance,
}

/// A time until which a version must not be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Strictness of the retention.
    pub mode: RetentionMode,
    /// End of the retention; at that instant it has ended.
    pub until: Timestamp,
}

/// Protection of a version against removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// Retention of the version, even if it has ended.
    pub retention: Option<Retention>,
    /// True if there is a legal hold, which has no end.
    pub legal_hold: bool,
}

/// Treatment of governance retention by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Normal,
    BypassGovernance,
}

impl Release {
    pub(super) fn from_header(bypass: Option<bool>) -> Self {
        if bypass == Some(true) { Self::BypassGovernance } else { Self::Normal }
    }
}

/// The object lock configuration of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LockConfiguration {
    pub(super) default: Option<DefaultRetention>,
}

/// Default retention for new objects of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DefaultRetention {
    pub(super) mode: RetentionMode,
    pub(super) period: Period,
}

/// Duration of a default retention, in the unit in which it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Period {
    Days(i32),
    Years(i32),
}

impl LockConfiguration {
    /// Returns the default retention of an object written now.
    pub(super) fn retention_at(&self, now: Timestamp) -> Option<Retention> {
        let DefaultRetention { mode, period } = self.default?;
        let days = match period {
            Period::Days(days) => i64::from(days),
            Period::Years(years) => i64::from(years) * 365,
        };
        let until = now.checked_add(SignedDuration::from_hours(days * 24)).unwrap_or(Timestamp::MAX);
        Some(Retention { mode, until })
    }
}

impl Protection {
    /// Checks that a version with this protection can be removed now.
    ///
    /// # Errors
    /// `AccessDenied` with the message of Amazon S3 for locked versions.
    pub(super) fn check_removal(&self, now: Timestamp, release: Release) -> S3Result<()> {
        let retained = self.retention.is_some_and(|retention| {
            retention.until > now && (retention.mode == RetentionMode::Compliance || release == Release::Normal)
        });
        if self.legal_hold || retained { Err(locked()) } else { Ok(()) }
    }

    /// Sets, extends or removes the retention.
    ///
    /// # Errors
    /// `InvalidArgument` for a date that is not in the future; `AccessDenied` if a compliance
    /// retention would be weakened, or a governance retention without the bypass header.
    pub(super) fn set_retention(
        &mut self,
        retention: Option<Retention>,
        now: Timestamp,
        release: Release,
    ) -> S3Result<()> {
        if retention.is_some_and(|retention| retention.until <= now) {
            return Err(invalid_argument("The retain until date must be in the future!"));
        }
        if let Some(held) = self.retention.filter(|held| held.until > now) {
            let weakened = retention.is_none_or(|new| {
                new.until < held.until
                    || (held.mode == RetentionMode::Compliance && new.mode == RetentionMode::Governance)
            });
            if weakened && (held.mode == RetentionMode::Compliance || release == Release::Normal) {
                return Err(locked());
            }
        }
        self.retention = retention;
        Ok(())
    }
}

fn locked() -> s3s::S3Error {
    refuse_because(S3ErrorCode::AccessDenied, "Access Denied because object protected by object lock.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time in range")
    }

    fn until(mode: RetentionMode, seconds: i64) -> Protection {
        let retention = Some(Retention { mode, until: at(seconds) });
        Protection { retention, legal_hold: false }
    }

    #[test]
    fn retention_ends_at_its_date() {
        let protection = until(RetentionMode::Compliance, 100);
        assert!(protection.check_removal(at(99), Release::BypassGovernance).is_err());
        assert!(protection.check_removal(at(100), Release::Normal).is_ok());
    }

    #[test]
    fn only_governance_can_be_bypassed() {
        let protection = until(RetentionMode::Governance, 100);
        assert!(protection.check_removal(at(0), Release::Normal).is_err());
        assert!(protection.check_removal(at(0), Release::BypassGovernance).is_ok());
    }

    #[test]
    fn a_legal_hold_has_no_end_and_no_bypass() {
        let protection = Protection { retention: None, legal_hold: true };
        assert!(protection.check_removal(Timestamp::MAX, Release::BypassGovernance).is_err());
    }

    #[test]
    fn retention_can_be_prolonged_but_not_weakened() {
        let mut protection = until(RetentionMode::Compliance, 100);
        let later = Retention { mode: RetentionMode::Compliance, until: at(200) };
        let softer = Retention { mode: RetentionMode::Governance, until: at(300) };
        assert!(protection.set_retention(Some(softer), at(0), Release::BypassGovernance).is_err());
        assert!(protection.set_retention(None, at(0), Release::BypassGovernance).is_err());
        assert!(protection.set_retention(Some(later), at(0), Release::Normal).is_ok());
        assert_eq!(protection.retention, Some(later));
        assert!(protection.set_retention(None, at(200), Release::Normal).is_ok());
    }

    #[test]
    fn a_date_in_the_past_is_refused() {
        let past = Retention { mode: RetentionMode::Governance, until: at(5) };
        let error = Protection::default().set_retention(Some(past), at(5), Release::Normal);
        assert_eq!(error.err().map(|e| e.code().clone()), Some(S3ErrorCode::InvalidArgument));
    }

    #[test]
    fn default_retention_counts_from_the_write() {
        let default = DefaultRetention { mode: RetentionMode::Governance, period: Period::Days(2) };
        let retention = LockConfiguration { default: Some(default) }.retention_at(at(0));
        assert_eq!(retention.map(|retention| retention.until), Some(at(2 * 86_400)));
        assert_eq!(LockConfiguration::default().retention_at(at(0)), None);
    }
}
