//! Measured values with names; percentiles, medians and comparisons of them. No I/O.

use std::time::Duration;

use serde::Serialize;

/// The parts of a measurement.
pub(crate) trait Part: Copy + Ord + Serialize + 'static {
    /// Returns all parts, in the order in which they are measured and reported.
    fn all() -> &'static [Self];

    /// Returns the name on the command line and in tables.
    fn name(self) -> &'static str;
}

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "1/s")]
    PerSecond,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "1")]
    Count,
    #[serde(rename = "per claim")]
    PerClaim,
    #[serde(rename = "MB")]
    Megabytes,
    #[serde(rename = "x")]
    Ratio,
    #[serde(rename = "%")]
    Percent,
    #[serde(rename = "µs")]
    Microseconds,
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    #[serde(rename = "s/GB")]
    SecondsPerGigabyte,
    #[serde(rename = "MiB")]
    Mebibytes,
}

impl Unit {
    /// Formats a value with its significant digits.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Count => format!("{value:.0}"),
            Self::PerSecond | Self::Megabytes => format!("{value:.1}"),
            Self::Milliseconds if value >= 100.0 => format!("{value:.0} ms"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::PerClaim => format!("{value:.2}"),
            Self::Ratio => format!("{value:.2} x"),
            Self::Percent => format!("{value:.0} %"),
            Self::Microseconds => format!("{value:.1} µs"),
            Self::GigabytesPerSecond => format!("{value:.2} GB/s"),
            Self::SecondsPerGigabyte => format!("{value:.3} s"),
            Self::Mebibytes => format!("{value:.1} MiB"),
        }
    }
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figure<P> {
    pub(crate) phase: P,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
}

/// Values in the order in which they are shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Figures<P>(Vec<Figure<P>>);

impl<P> Default for Figures<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P: Part> Figures<P> {
    pub(crate) fn add(&mut self, phase: P, name: impl Into<String>, unit: Unit, value: f64) {
        self.0.push(Figure { phase, name: name.into(), unit, value });
    }

    /// Adds the median, the 95th and 99th percentile, and the maximum.
    pub(crate) fn add_times(&mut self, phase: P, what: &str, times: &[Duration]) {
        let mut times = times.to_vec();
        times.sort_unstable();
        for (name, hundredth) in [("p50", 50), ("p95", 95), ("p99", 99), ("last", 100)] {
            if let Some(time) = percentile(&times, hundredth) {
                self.add(phase, format!("{what}, {name}"), Unit::Milliseconds, milliseconds(time));
            }
        }
    }

    pub(crate) fn get(&self, phase: P, name: &str) -> Option<f64> {
        self.0.iter().find(|figure| figure.phase == phase && figure.name == name).map(|figure| figure.value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Figure<P>> {
        self.0.iter()
    }

    pub(crate) fn append(&mut self, more: Self) {
        self.0.extend(more.0);
    }
}

/// Returns the smallest of the sorted times that `hundredth` percent of all times don't exceed.
pub(crate) fn percentile(sorted: &[Duration], hundredth: usize) -> Option<Duration> {
    let rank = (sorted.len() * hundredth).div_ceil(100);
    sorted.get(rank.max(1) - 1).copied()
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Returns the median of some values; for an even count, the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len() % 2, values.get(middle.wrapping_sub(1)), values.get(middle)) {
        (0, Some(lower), Some(upper)) => f64::midpoint(*lower, *upper),
        (1, _, Some(value)) => *value,
        _ => f64::NAN,
    }
}

/// Returns the median of each value over the rounds that have it.
pub(crate) fn medians<P: Part>(rounds: &[Figures<P>]) -> Figures<P> {
    let mut result: Vec<Figure<P>> = Vec::new();
    for figure in rounds.iter().flat_map(Figures::iter) {
        if result.iter().any(|known| known.phase == figure.phase && known.name == figure.name) {
            continue;
        }
        let values = rounds.iter().filter_map(|round| round.get(figure.phase, &figure.name)).collect();
        result.push(Figure { value: median(values), ..figure.clone() });
    }
    // A value that only a later round has is sorted to the others of its phase.
    result.sort_by_key(|figure| figure.phase);
    Figures(result)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::measure::operator::phase::{Figures, Phase};

    fn times(milliseconds: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        milliseconds.into_iter().map(Duration::from_millis).collect()
    }

    #[rstest]
    #[case(50, 50)]
    #[case(99, 99)]
    #[case(100, 100)]
    fn of_a_hundred_times_the_percentile_is_the_one_of_that_rank(#[case] hundredth: usize, #[case] expected: u64) {
        assert_eq!(percentile(&times(1..=100), hundredth), Some(Duration::from_millis(expected)));
    }

    #[test]
    fn a_percentile_is_always_one_of_the_times() {
        assert_eq!(percentile(&times([7]), 99), Some(Duration::from_millis(7)));
        assert_eq!(percentile(&times([1, 2, 3]), 50), Some(Duration::from_millis(2)));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn the_order_in_which_times_came_is_of_no_account() {
        let mut figures = Figures::default();
        figures.add_times(Phase::Create, "to Bound", &times([30, 10, 20]));
        assert_eq!(figures.get(Phase::Create, "to Bound, p50"), Some(20.0));
        assert_eq!(figures.get(Phase::Create, "to Bound, last"), Some(30.0));
    }

    #[test]
    fn rounds_come_to_their_medians_and_a_round_may_lack_a_number() {
        let round = |rate: f64, more: Option<f64>| {
            let mut figures = Figures::default();
            figures.add(Phase::Create, "claims/s", Unit::PerSecond, rate);
            figures.add(Phase::Delete, "deletions/s", Unit::PerSecond, 1.0);
            if let Some(more) = more {
                figures.add(Phase::Create, "get secrets", Unit::PerClaim, more);
            }
            figures
        };
        let medians = medians(&[round(90.0, None), round(10.0, Some(4.0)), round(70.0, Some(2.0))]);
        let shown: Vec<(&str, f64)> = medians.iter().map(|figure| (figure.name.as_str(), figure.value)).collect();
        assert_eq!(shown, [("claims/s", 70.0), ("get secrets", 3.0), ("deletions/s", 1.0)]);
    }
}
