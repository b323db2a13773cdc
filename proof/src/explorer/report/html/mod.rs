//! A report as one HTML page without dependencies: no scripts, no fonts, no network.

mod chart;
mod heat;
mod timeline;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::oracles::Promise;

use super::text::virtual_time;
use super::{CampaignReport, Drawings, Failure, Slow};

const STYLE: &str = include_str!("style.css");
/// Number of schedules in the lists of the slowest and of the longest.
const MOST_SLOW: usize = 10;

/// Renders the page of a report.
pub fn page(report: &CampaignReport, drawings: &Drawings) -> String {
    let title = format!("Stowage explored: {} schedules", report.schedules);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (summary(report))
                (failures(report, drawings))
                (gaps(report))
                (scenarios(report))
                (heat::table(report))
                (promises(report))
                (rotations(drawings))
                (slow(report))
                (reasons(report))
            }
        }
    };
    page.into_string()
}

fn summary(report: &CampaignReport) -> Markup {
    let (cells, expected) = report.coverage();
    let conclusion = report.conclusion();
    let profile = format!("{:?}", report.profile).to_lowercase();
    html! {
        p.verdict.bad[conclusion.is_failure()].open[!conclusion.is_failure() && !conclusion.is_good()] { (conclusion) }
        dl.facts {
            div { dt { "profile" } dd { (profile) } }
            div { dt { "seed" } dd { (report.seed) } }
            div { dt { "shard" } dd { (report.shard) } }
            div { dt { "complete" } dd { @if report.complete { "yes" } @else { "no, cut short" } } }
            div { dt { "time" } dd { (format!("{:.1} s", report.seconds)) } }
            div { dt { "rate" } dd { (format!("{:.0} schedules/s for each of {} jobs", report.rate(), report.jobs)) } }
            div { dt { "processor" } dd { (report.cpu) } }
            div { dt { "fault × phase" } dd { (format!("{cells} of {expected} met")) } }
        }
    }
}

fn failures(report: &CampaignReport, drawings: &Drawings) -> Markup {
    html! {
        @if !report.failures.is_empty() {
            section id="failures" {
                h2 { "Broken promises" }
                @for failure in &report.failures { (self::failure(failure, drawings)) }
            }
        }
    }
}

fn failure(failure: &Failure, drawings: &Drawings) -> Markup {
    let timeline = drawings.timelines.iter().find(|(line, _)| *line == failure.line).map(|(_, timeline)| timeline);
    html! {
        article.failure {
            h3 { (failure.promise) ": " (failure.message) }
            pre { (failure.command()) }
            @if let Some(command) = failure.smaller_command() {
                p { "The smallest schedule found that breaks the same promise:" }
                pre { (command) }
            }
            @if let Some(timeline) = timeline {
                details {
                    summary { "Timeline of " code { (timeline.line) } }
                    (timeline::table(timeline))
                }
            }
        }
    }
}

fn gaps(report: &CampaignReport) -> Markup {
    let gaps = report.gaps();
    html! {
        @if !gaps.is_empty() {
            section id="gaps" {
                h2 { "Not met" }
                p { "What an exploration of everything has to meet, and this one did not." }
                ul { @for gap in gaps { li { (gap) } } }
            }
        }
    }
}

fn scenarios(report: &CampaignReport) -> Markup {
    html! {
        section id="scenarios" {
            h2 { "Scenarios" }
            div.wide { table {
                thead { tr {
                    th { "scenario" } th { "about" } th { "phase" } th.number { "schedules" } th.number { "effects" }
                    th.number { "crash points" } th.number title="left out: the contract can't promise anything" { "limits" }
                } }
                tbody { @for (name, row) in &report.scenarios { tr {
                    td { code { (name) } } td { (row.about) } td { (row.phase) }
                    td.number { (row.schedules) } td.number { (row.effects) }
                    td.number { (row.crash_points) " of " (row.crash_points_expected) } td.number { (row.limits) }
                } } }
            } }
        }
    }
}

fn promises(report: &CampaignReport) -> Markup {
    let judged = |promise: Promise| report.judged.get(promise.name()).copied().unwrap_or_default();
    let limited = |promise: Promise| report.limited.get(promise.name()).copied().unwrap_or_default();
    let broken = |promise: Promise| report.failures.iter().filter(|failure| failure.promise == promise.name()).count();
    html! {
        section id="promises" {
            h2 { "Promises" }
            p {
                "Judged: schedules in which a promise could have been seen broken; those of the end without faults or of \
                 another order (D1, D2) only where ends were compared. Limited: schedules in which it ended at a limit that the contract states."
            }
            div.wide { table {
                thead { tr { th { "" } th { "promise" } th.number { "judged" } th.number { "limited" }
                    th.number { "broken" } } }
                tbody { @for promise in Promise::ALL { tr.bad[broken(promise) > 0] {
                    td { (promise) } td { (promise.words()) } td.number { (judged(promise)) }
                    td.number { (limited(promise)) } td.number { (broken(promise)) }
                } } }
            } }
        }
    }
}

fn rotations(drawings: &Drawings) -> Markup {
    html! {
        @if !drawings.charts.is_empty() {
            section id="rotations" {
                h2 { "Keys and tenants" }
                p {
                    "Each rotation without faults. A key is minted, given an end (lighter from there on), refused from \
                     that end on (palest), then removed. Dots are uses that the gateway allowed, crosses those that it \
                     refused, in the colour of their key."
                }
                @for (name, chart) in &drawings.charts {
                    figure { figcaption { code { (name) } } (chart::draw(chart)) }
                }
            }
        }
    }
}

fn slow(report: &CampaignReport) -> Markup {
    let slowest = most(report.scenarios.values().filter_map(|row| row.slowest.as_ref()));
    let longest = most(report.scenarios.values().filter_map(|row| row.longest.as_ref()));
    html! {
        section id="slow" {
            h2 { "Slowest and longest" }
            p { "The slowest schedule of each scenario by real time, and the longest by virtual time." }
            div.wide { table {
                thead { tr { th.number { "real time" } th { "schedule" } } }
                tbody { @for slow in slowest { tr {
                    td.number { (format!("{:.0} ms", slow.seconds * 1000.0)) } td { code { (slow.line) } }
                } } }
                thead { tr { th.number { "virtual time" } th { "schedule" } } }
                tbody { @for slow in longest { tr { td.number { (virtual_time(slow)) } td { code { (slow.line) } } } } }
            } }
        }
    }
}

fn most<'a>(slow: impl Iterator<Item = &'a Slow>) -> Vec<&'a Slow> {
    let mut most: Vec<&Slow> = slow.collect();
    most.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    most.truncate(MOST_SLOW);
    most
}

fn reasons(report: &CampaignReport) -> Markup {
    html! {
        section id="reasons" {
            h2 { "Reasons of Ready that were seen" }
            p { @for reason in &report.reasons { code { (reason) } " " } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{keychart, samples};
    use super::*;
    use crate::explorer::report::KeyChart;
    use crate::explorer::timeline::samples as timelines;

    fn shown() -> String {
        let chart = KeyChart::of(&keychart::tests::rotation()).expect("there are two keys");
        let drawings = Drawings {
            charts: vec![("rotate".to_owned(), chart)],
            timelines: vec![(samples::LINE.to_owned(), timelines::timeline())],
        };
        page(&samples::report(), &drawings)
    }

    #[test]
    fn the_page_shows_what_was_explored() {
        let page = shown();
        for part in ["failures", "scenarios", "heat", "promises", "rotations", "slow", "reasons"] {
            assert!(page.contains(&format!("<section id=\"{part}\"")), "{part} is missing");
        }
        assert!(page.contains(&format!("stowage-proof replay '{}'", samples::LINE)));
        assert!(page.contains("stowage-proof replay 'rotate 1 #17 crash(before)'"), "the smaller schedule");
        assert!(page.contains("45 of 90") && page.contains("BackendError"));
        assert!(page.contains(Promise::I6.words()));
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = shown();
        for outside in ["<script", "src=", "href=", "url(", "@import", "http://", "https://"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn what_others_wrote_is_escaped() {
        let page = shown();
        assert!(page.contains("key &lt;b&gt;#1&lt;/b&gt; &amp; its &quot;friend&quot; were refused"));
        assert!(page.contains("Test CPU &lt;fast&gt;"));
        assert!(!page.contains("<b>#1"));
    }

    #[test]
    fn without_failures_there_is_no_section_for_them() {
        let report = CampaignReport { failures: Vec::new(), ..samples::report() };
        let page = page(&report, &Drawings::default());
        assert!(page.contains("<p class=\"verdict\">every promise was kept") && !page.contains("id=\"failures\""));
        assert!(!page.contains("id=\"gaps\""));
    }

    #[test]
    fn what_makes_the_command_fail_is_no_green_page() {
        let page = |report| page(&report, &Drawings::default());
        let gaps = page(samples::gaps());
        assert!(gaps.contains("<p class=\"verdict bad\">no promise was broken, but not all was tried"), "{gaps}");
        assert!(gaps.contains("<section id=\"gaps\"") && gaps.contains("<li>lost-answer met no call in rotate</li>"));
        assert!(page(samples::nothing()).contains("<p class=\"verdict bad\">no schedule was run"));
        let idle = page(CampaignReport { complete: true, ..samples::nothing() });
        assert!(idle.contains("<p class=\"verdict open\">no schedule falls to this shard"));
    }
}
