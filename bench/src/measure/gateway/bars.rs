//! Minimum performance of a gateway, and its comparison with the measured values. No I/O.

use std::fmt::Write as _;

use super::case::{Case, Figures, Shape};
use super::play::{CORE, MEMORY, OTHERS, REQUESTS, THROUGHPUT};
use super::revoke::REFUSAL;
use crate::measure::figures::{Part as _, Unit};

/// A lower or an upper bound of a value.
struct Bar {
    case: Case,
    name: &'static str,
    unit: Unit,
    bound: Bound,
}

enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// Name of the gateway's speed relative to the copy proxy.
const OF_THE_COPY: &str = "of the copy proxy";
/// Name of the gateway's speed relative to direct requests to the store.
const OF_DIRECT: &str = "of direct";

const BARS: [Bar; 13] = [
    bar(Case::ListBuckets, REQUESTS, Unit::PerSecond, Bound::AtLeast(45_000.0)),
    bar(Case::BadSignature, REQUESTS, Unit::PerSecond, Bound::AtLeast(50_000.0)),
    bar(Case::GetSmall, REQUESTS, Unit::PerSecond, Bound::AtLeast(12_000.0)),
    bar(Case::PutSmall, REQUESTS, Unit::PerSecond, Bound::AtLeast(9_000.0)),
    bar(Case::GetLarge, OF_THE_COPY, Unit::Percent, Bound::AtLeast(75.0)),
    bar(Case::TlsGet, THROUGHPUT, Unit::GigabytesPerSecond, Bound::AtLeast(0.8)),
    bar(Case::TlsPut, THROUGHPUT, Unit::GigabytesPerSecond, Bound::AtLeast(0.8)),
    bar(Case::StoreGet, OF_DIRECT, Unit::Percent, Bound::AtLeast(95.0)),
    bar(Case::StorePut, OF_DIRECT, Unit::Percent, Bound::AtLeast(95.0)),
    bar(Case::Idle, MEMORY, Unit::Mebibytes, Bound::AtMost(20.0)),
    bar(Case::SlowGet, MEMORY, Unit::Mebibytes, Bound::AtMost(64.0)),
    bar(Case::SlowPut, MEMORY, Unit::Mebibytes, Bound::AtMost(64.0)),
    bar(Case::Revoke, REFUSAL, Unit::Milliseconds, Bound::AtMost(1_000.0)),
];

const fn bar(case: Case, name: &'static str, unit: Unit, bound: Bound) -> Bar {
    Bar { case, name, unit, bound }
}

/// Adds the speed of a gateway relative to the others of the same round.
pub(super) fn compare(gateway: &mut Figures, copy: Option<&Figures>, direct: Option<&Figures>, cases: &[Case]) {
    for case in cases {
        let (beside, name) = match case.shape() {
            Shape::Small | Shape::Large { .. } => (copy, OF_THE_COPY),
            Shape::LargeTls | Shape::Real => (direct, OF_DIRECT),
            Shape::Rest | Shape::Slow { .. } | Shape::Local | Shape::Revocation => continue,
        };
        let speed = |figures: &Figures| figures.get(*case, REQUESTS).or_else(|| figures.get(*case, THROUGHPUT));
        if let (Some(ours), Some(theirs)) = (speed(gateway), beside.and_then(speed)) {
            gateway.add(*case, name, Unit::Percent, 100.0 * ours / theirs.max(f64::EPSILON));
        }
    }
}

/// Returns a Markdown table of the bars: bound, measured value, and the limiting processor.
pub(super) fn table(gateway: &Figures) -> String {
    let mut text = "| case | number | bar | measured | |\n|---|---|---|---|---|\n".to_owned();
    for Bar { case, name, unit, bound } in &BARS {
        let (least, bar) = match bound {
            Bound::AtLeast(bar) => (true, *bar),
            Bound::AtMost(bar) => (false, *bar),
        };
        let asked = format!("{} {}", if least { "≥" } else { "≤" }, unit.show(bar));
        let measured = gateway.get(*case, name);
        let shown = measured.map_or_else(|| "not measured".to_owned(), |value| unit.show(value));
        let verdict = match measured {
            None => String::new(),
            Some(value) if (least && value >= bar) || (!least && value <= bar) => "met".to_owned(),
            Some(_) => format!("**missed**{}", limit(gateway, *case)),
        };
        // Writing to a string can't fail.
        let _ = writeln!(text, "| {} | {name} | {asked} | {shown} | {verdict} |", case.name());
    }
    text
}

/// Describes the processors that were busy.
fn limit(gateway: &Figures, case: Case) -> &'static str {
    let is_busy = |name| gateway.get(case, name).is_some_and(|share| share >= 95.0);
    match (is_busy(CORE), is_busy(OTHERS)) {
        (true, false) => ": the gateway has used up its core",
        (false, true) => ": clients and store have used up theirs",
        (true, true) => ": all processors are busy",
        (false, false) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(numbers: &[(Case, &str, f64)]) -> Figures {
        numbers.iter().fold(Figures::default(), |mut figures, (case, name, value)| {
            figures.add(*case, *name, Unit::Count, *value);
            figures
        })
    }

    #[test]
    fn a_bar_is_met_or_missed_and_what_limits_is_told() {
        let told = table(&figures(&[
            (Case::ListBuckets, REQUESTS, 45_000.0),
            (Case::GetSmall, REQUESTS, 11_999.0),
            (Case::GetSmall, CORE, 99.0),
            (Case::Idle, MEMORY, 20.1),
        ]));
        assert!(told.contains("| list-buckets | requests/s | ≥ 45000.0 | 45000.0 | met |"), "{told}");
        assert!(told.contains("| 11999.0 | **missed**: the gateway has used up its core |"), "{told}");
        assert!(told.contains("| ≤ 20.0 MiB | 20.1 MiB | **missed** |"), "{told}");
        assert!(told.contains("| put-small | requests/s | ≥ 9000.0 | not measured |  |"), "{told}");
    }

    #[test]
    fn a_gateway_is_compared_with_what_does_the_same() {
        let mut gateway = figures(&[(Case::GetLarge, THROUGHPUT, 3.0), (Case::StoreGet, REQUESTS, 9.0)]);
        let copy = figures(&[(Case::GetLarge, THROUGHPUT, 4.0)]);
        let direct = figures(&[(Case::GetLarge, THROUGHPUT, 5.0), (Case::StoreGet, REQUESTS, 10.0)]);
        compare(&mut gateway, Some(&copy), Some(&direct), &[Case::GetLarge, Case::StoreGet, Case::Idle]);
        assert_eq!(gateway.get(Case::GetLarge, OF_THE_COPY), Some(75.0));
        assert_eq!(gateway.get(Case::StoreGet, OF_DIRECT), Some(90.0));
    }
}
