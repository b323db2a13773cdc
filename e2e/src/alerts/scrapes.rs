//! What Prometheus would have of a scene: each series with a value for each scrape.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The time between two scrapes, and between two evaluations of the rules, in seconds.
pub(super) const INTERVAL: u64 = 30;

/// What Prometheus scrapes: a pod behind a Service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// Name of the Service, as a ServiceMonitor has it in the label `job`.
    pub(super) job: &'static str,
    pub(super) pod: &'static str,
}

/// All scrapes so far.
#[derive(Debug, Default)]
pub(super) struct Scrapes {
    taken: usize,
    /// By name and labels. Shorter than `taken` where a series was missing in the end.
    series: BTreeMap<String, Vec<Option<f64>>>,
}

impl Scrapes {
    /// The next scrape: of each target its page, or nothing where nobody answers.
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

    /// The seconds from the first scrape to the last.
    pub(super) fn last(&self) -> u64 {
        u64::try_from(self.taken).unwrap_or(u64::MAX).saturating_sub(1).saturating_mul(INTERVAL)
    }

    /// Each series whose metric is `wanted`, with its values as promtool has them written: the
    /// first scrape that misses one marks it as stale, as Prometheus does.
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

/// The samples of a page: series and value. Comments are none, and neither is what can't be read.
fn samples(page: &str) -> impl Iterator<Item = (&str, f64)> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).filter_map(|(series, value)| Some((series, value.parse().ok()?)))
}

/// A series with the labels of its target first.
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
