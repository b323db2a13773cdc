//! The scrapes of a scene: each series with a value per scrape.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Interval of scrapes and of rule evaluations, in seconds.
pub(super) const INTERVAL: u64 = 30;

/// A scrape target: a pod behind a Service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// Name of the Service, which a ServiceMonitor puts into the label `job`.
    pub(super) job: &'static str,
    pub(super) pod: &'static str,
}

/// All scrapes so far.
#[derive(Debug, Default)]
pub(super) struct Scrapes {
    taken: usize,
    /// Values by name and labels. Shorter than `taken` if a series was missing at the end.
    series: BTreeMap<String, Vec<Option<f64>>>,
}

impl Scrapes {
    /// Adds a scrape, with the page of each target, or `None` for a target that doesn't answer.
    pub(super) fn take(&mut self, namespace: &str, pages: &[(Target, Option<String>)]) {
        for (target, page) in pages {
            let of_target = format!("namespace=\"{namespace}\",job=\"{}\",pod=\"{}\"", target.job, target.pod);
            self.note(format!("up{{{of_target}}}"), f64::from(u8::from(page.is_some())));
            for (series, value) in page.iter().flat_map(|page| samples(page)) {
                self.note(with_labels(series, &of_target), value);
            }
        }
        self.taken += 1;
    }

    fn note(&mut self, series: String, value: f64) {
        let values = self.series.entry(series).or_default();
        values.resize(self.taken, None);
        values.push(Some(value));
    }

    /// Returns the seconds between the first scrape and the last.
    pub(super) fn last(&self) -> u64 {
        u64::try_from(self.taken).unwrap_or(u64::MAX).saturating_sub(1).saturating_mul(INTERVAL)
    }

    /// Returns each series with a `wanted` metric, with its values in promtool's notation. The
    /// first scrape without a value is marked as stale, as in Prometheus.
    pub(super) fn written(&self, wanted: impl Fn(&str) -> bool) -> Vec<(&str, String)> {
        let of_metric = |series: &str| wanted(series.split('{').next().unwrap_or_default());
        let kept = self.series.iter().filter(|(series, _)| of_metric(series));
        kept.map(|(series, values)| (series.as_str(), written(values, self.taken))).collect()
    }
}

fn written(values: &[Option<f64>], taken: usize) -> String {
    let mut text = String::new();
    let mut was_there = false;
    for value in values.iter().copied().chain(std::iter::repeat(None)).take(taken) {
        match value {
            // Writing to a string can't fail.
            Some(value) => _ = write!(text, "{value} "),
            None if was_there => text.push_str("stale "),
            None => text.push_str("_ "),
        }
        was_there = value.is_some();
    }
    text
}

/// Returns the samples of a page as series and value. Skips comments and malformed lines.
fn samples(page: &str) -> impl Iterator<Item = (&str, f64)> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).filter_map(|(series, value)| Some((series, value.parse().ok()?)))
}

/// Returns the series with its target's labels inserted first.
fn with_labels(series: &str, of_target: &str) -> String {
    match series.split_once('{') {
        Some((metric, "}")) => format!("{metric}{{{of_target}}}"),
        Some((metric, labels)) => format!("{metric}{{{of_target},{labels}"),
        None => format!("{series}{{{of_target}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { job: "operator", pod: "one" };

    fn page(text: &str) -> (Target, Option<String>) {
        (TARGET, Some(text.to_owned()))
    }

    #[test]
    fn a_series_has_a_value_for_each_scrape_and_the_labels_of_its_target() {
        let mut scrapes = Scrapes::default();
        scrapes.take("here", &[page("# HELP a A.\na 1\nb{c=\"d e\"} 2.5\n# EOF")]);
        scrapes.take("here", &[page("a 2\n")]);
        scrapes.take("here", &[page("a 3\n")]);
        scrapes.take("here", &[(TARGET, None)]);
        scrapes.take("here", &[page("a 4\nb{c=\"d e\"} 5\n")]);
        assert_eq!(scrapes.last(), 4 * INTERVAL);
        let of_target = "namespace=\"here\",job=\"operator\",pod=\"one\"";
        let expected = [
            (format!("a{{{of_target}}}"), "1 2 3 stale 4 "),
            (format!("b{{{of_target},c=\"d e\"}}"), "2.5 stale _ _ 5 "),
            (format!("up{{{of_target}}}"), "1 1 1 0 1 "),
        ];
        let written = scrapes.written(|_| true);
        let written: Vec<_> = written.iter().map(|(series, values)| ((*series).to_owned(), values.as_str())).collect();
        assert_eq!(written, expected);
        assert_eq!(scrapes.written(|metric| metric == "up").len(), 1);
    }
}
