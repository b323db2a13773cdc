//! Storage usage in the status, as measured by gateways for a quota (spec §6).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{BucketClaimStatus, BucketRecord, BucketUsage, Limits};

use super::held::Held;
use super::step::Announcement;
use super::view::View;

/// Minimum time between two updates of the figures, unless a limit was crossed.
const SELDOM: SignedDuration = SignedDuration::from_mins(10);
/// Divisor for the smallest reported change: a change of less than 1/100 is not reported.
const NOTABLE: u64 = 100;

fn shown(held: Held) -> BucketUsage {
    let number = |it| i64::try_from(it).unwrap_or(i64::MAX);
    BucketUsage { bytes: number(held.bytes), objects: number(held.objects), measured_at: Time(held.at) }
}

/// Fill level of a bucket, relative to its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Below,
    AboveSoft,
    Full,
}

fn level(bytes: u64, limits: Limits) -> Level {
    if limits.hard.is_some_and(|hard| bytes >= hard.get()) {
        Level::Full
    } else if limits.soft.is_some_and(|soft| bytes > soft.get()) {
        Level::AboveSoft
    } else {
        Level::Below
    }
}

/// Returns the usage to report, and the time of the next pass if newer figures have to wait.
pub(super) fn next(
    view: &View,
    record: Option<&BucketRecord>,
    now: Timestamp,
) -> (Option<BucketUsage>, Option<Timestamp>) {
    let before = view.claim().status.usage.clone();
    let (Some(record), Ok(desired)) = (record, &view.claim().desired) else { return (before, None) };
    let limits = Limits { soft: desired.quota_soft, hard: desired.quota_hard };
    if limits == Limits::default() {
        return (None, None);
    }
    let is_same_bucket = view.claim().status.bucket_name.as_deref() == Some(record.bucket.as_str());
    decide(before.filter(|_| is_same_bucket), view.held(record).copied(), limits, now)
}

fn decide(
    before: Option<BucketUsage>,
    held: Option<Held>,
    limits: Limits,
    now: Timestamp,
) -> (Option<BucketUsage>, Option<Timestamp>) {
    let Some(held) = held else { return (before, None) };
    let Some(last) = before else { return (Some(shown(held)), None) };
    let number = |it| u64::try_from(it).unwrap_or(0);
    let (bytes, objects) = (number(last.bytes), number(last.objects));
    if level(bytes, limits) != level(held.bytes, limits) {
        return (Some(shown(held)), None);
    }
    let is_notable = |before: u64, now: u64| before != now && before.abs_diff(now) >= before / NOTABLE;
    if !is_notable(bytes, held.bytes) && !is_notable(objects, held.objects) {
        return (Some(last), None);
    }
    let age = now.duration_since(last.measured_at.0);
    // A clock that was ahead must not block updates forever.
    if age >= SELDOM || age.is_negative() {
        return (Some(shown(held)), None);
    }
    let again = last.measured_at.0.checked_add(SELDOM).ok();
    (Some(last), again)
}

/// Returns the Event about a limit that was crossed, as reported in the new status.
pub(super) fn crossing(view: &View, after: &BucketClaimStatus) -> Option<Announcement> {
    let desired = view.claim().desired.as_ref().ok()?;
    let limits = Limits { soft: desired.quota_soft, hard: desired.quota_hard };
    let before = view.status_before();
    let is_same_bucket = before.bucket_name == after.bucket_name;
    let bytes = |usage: &BucketUsage| u64::try_from(usage.bytes).unwrap_or(0);
    let was = before.usage.as_ref().filter(|_| is_same_bucket).map_or(Level::Below, |it| level(bytes(it), limits));
    let holds = after.usage.as_ref().map(bytes)?;
    let now = level(holds, limits);
    let (reason, limit) = match now {
        Level::Below => return None,
        Level::AboveSoft => ("AboveSoftQuota", limits.soft),
        Level::Full => ("QuotaExhausted", limits.hard),
    };
    let note = match (now, limit) {
        (Level::Full, Some(limit)) => {
            format!("the bucket holds {holds} bytes, its hard quota is {limit}: nothing more can be stored")
        }
        (_, Some(limit)) => format!("the bucket holds {holds} bytes, its soft quota is {limit}"),
        (_, None) => return None,
    };
    (now > was).then(|| Announcement { warning: true, reason: reason.to_owned(), note })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::Quantity;

    const BEGAN: &str = "2030-01-01T00:00:00Z";

    fn at(minutes: i64) -> Timestamp {
        BEGAN.parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
    }

    fn held(bytes: u64, minutes: i64) -> Held {
        Held { bytes, objects: 3, at: at(minutes) }
    }

    fn limits() -> Limits {
        let bytes = |number: i64| Quantity::Int(number).bytes().ok();
        Limits { soft: bytes(2000), hard: bytes(3000) }
    }

    // covers: 6.quota.shown
    #[rstest]
    #[case::nothing_was_measured(None, None, 60, None, None)]
    #[case::it_was_measured_first(None, Some(held(1000, 0)), 0, Some(1000), None)]
    #[case::a_small_change(Some(1000), Some(held(1009, 60)), 60, Some(1000), None)]
    #[case::a_change_in_time(Some(1000), Some(held(1010, 10)), 10, Some(1010), None)]
    #[case::a_change_too_soon(Some(1000), Some(held(1500, 5)), 5, Some(1000), Some(10))]
    #[case::above_the_soft_limit(Some(2000), Some(held(2001, 1)), 1, Some(2001), None)]
    #[case::full(Some(2999), Some(held(3000, 1)), 1, Some(3000), None)]
    #[case::below_again(Some(3000), Some(held(2999, 1)), 1, Some(2999), None)]
    #[case::a_clock_that_was_ahead(Some(1000), Some(held(1500, -9)), -9, Some(1500), None)]
    #[case::it_is_no_longer_measured(Some(1000), None, 60, Some(1000), None)]
    fn a_status_is_not_written_for_little(
        #[case] before: Option<u64>,
        #[case] found: Option<Held>,
        #[case] minutes: i64,
        #[case] shown: Option<i64>,
        #[case] again: Option<i64>,
    ) {
        let before = before.map(|bytes| super::shown(held(bytes, 0)));
        let (usage, wake) = decide(before, found, limits(), at(minutes));
        assert_eq!((usage.map(|it| it.bytes), wake), (shown, again.map(at)));
    }
}
