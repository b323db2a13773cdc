//! Merges the reports of all shards of a campaign.

use std::collections::{BTreeMap, BTreeSet};

use crate::explorer::Shard;

use super::{CampaignReport, ScenarioCoverage, Slow};

/// Error of merging reports that are not all shards of one campaign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// No report was given.
    #[error("there is no report to merge")]
    Nothing,
    /// Two reports belong to different campaigns.
    #[error("shard {shard} is of another campaign: its {what} is {found}, that of shard {first} is {expected}")]
    Other {
        /// The shard that doesn't match the first.
        shard: Shard,
        /// The first shard given.
        first: Shard,
        /// The property that differs.
        what: &'static str,
        /// Value of the property in the shard.
        found: String,
        /// Value of the property in the first shard.
        expected: String,
    },
    /// A scenario ran differently without faults, though both builds have the same sources.
    #[error("scenario {scenario} ran differently without faults in shard {shard}: its hash is another")]
    Differs {
        /// The shard that doesn't match the first.
        shard: Shard,
        /// The scenario.
        scenario: String,
    },
    /// A shard was given twice.
    #[error("shard {0} is there twice")]
    Twice(Shard),
    /// Shards are missing.
    #[error("of {of} shards these are missing: {}", some(.missing, *.of))]
    Missing {
        /// Indices of the missing shards, from 0.
        missing: Vec<usize>,
        /// Number of shards.
        of: usize,
    },
}

/// Formats the first ten missing shards, and the number of further ones.
fn some(missing: &[usize], of: usize) -> String {
    let named: Vec<String> = missing.iter().take(10).map(|index| format!("{index}/{of}")).collect();
    let more = missing.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &more
}

/// Merges the reports of all shards of one campaign.
///
/// The time is that of the slowest shard. The jobs and their time are the sums of all shards.
///
/// # Errors
/// Returns an error if the reports are not all shards of one campaign, each once.
pub fn merge(reports: Vec<CampaignReport>) -> Result<CampaignReport, MergeError> {
    // A report that was cut short before its first schedule has no scenarios.
    let (unknowing, knowing): (Vec<_>, Vec<_>) = reports.into_iter().partition(|report| report.scenarios.is_empty());
    let mut reports = knowing.into_iter().chain(unknowing);
    let mut merged = reports.next().ok_or(MergeError::Nothing)?;
    let first = merged.shard;
    let mut seen = BTreeSet::from([first.index]);
    let mut cpus = BTreeSet::from([merged.cpu.clone()]);
    for report in reports {
        check(&merged, &report, first)?;
        if !seen.insert(report.shard.index) {
            return Err(MergeError::Twice(report.shard));
        }
        cpus.insert(report.cpu.clone());
        add(&mut merged, report);
    }
    let missing: Vec<usize> = (0..first.of).filter(|index| !seen.contains(index)).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { missing, of: first.of });
    }
    merged.shard = Shard::WHOLE;
    merged.cpu = Vec::from_iter(cpus).join(", ");
    merged.failures.sort();
    Ok(merged)
}

/// Checks that a report belongs to the same campaign as the first.
fn check(merged: &CampaignReport, report: &CampaignReport, first: Shard) -> Result<(), MergeError> {
    let profile = |report: &CampaignReport| format!("{:?}", report.profile).to_lowercase();
    let knowing = if report.scenarios.is_empty() && !report.complete { merged } else { report };
    let names = |report: &CampaignReport| Vec::from_iter(report.scenarios.keys().cloned()).join(" ");
    let traits = [
        ("build", report.build.clone(), merged.build.clone()),
        ("profile", profile(report), profile(merged)),
        ("seed", report.seed.to_string(), merged.seed.to_string()),
        ("number of shards", report.shard.of.to_string(), first.of.to_string()),
        ("set of scenarios", names(knowing), names(merged)),
    ];
    if let Some((what, found, expected)) = traits.into_iter().find(|(_, found, expected)| found != expected) {
        return Err(MergeError::Other { shard: report.shard, first, what, found, expected });
    }
    if report.complete && merged.complete && report.numbered != merged.numbered {
        let (what, found, expected) = ("number of schedules", report.numbered.to_string(), merged.numbered.to_string());
        return Err(MergeError::Other { shard: report.shard, first, what, found, expected });
    }
    for (name, row) in &report.scenarios {
        if merged.scenarios.get(name).is_some_and(|there| there.hash != row.hash) {
            return Err(MergeError::Differs { shard: report.shard, scenario: name.clone() });
        }
    }
    Ok(())
}

fn add(merged: &mut CampaignReport, report: CampaignReport) {
    merged.schedules += report.schedules;
    merged.seconds = merged.seconds.max(report.seconds);
    merged.jobs += report.jobs;
    merged.job_seconds += report.job_seconds;
    merged.complete &= report.complete;
    merged.numbered = merged.numbered.max(report.numbered);
    sum(&mut merged.judged, report.judged);
    sum(&mut merged.limited, report.limited);
    merged.reasons.extend(report.reasons);
    merged.failures.extend(report.failures);
    for (name, row) in report.scenarios {
        if let Some(there) = merged.scenarios.get_mut(&name) {
            add_scenario(there, row);
        }
    }
}

/// Adds the counts of a scenario. Effects, expected crashes and limits stay, because they are the
/// same in every shard.
fn add_scenario(there: &mut ScenarioCoverage, row: ScenarioCoverage) {
    there.schedules += row.schedules;
    there.crash_points += row.crash_points;
    there.unmet += row.unmet;
    sum(&mut there.faults, row.faults);
    longer(&mut there.slowest, row.slowest);
    longer(&mut there.longest, row.longest);
}

fn sum(there: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (name, count) in more {
        *there.entry(name).or_default() += count;
    }
}

fn longer(there: &mut Option<Slow>, other: Option<Slow>) {
    if let Some(other) = other
        && there.as_ref().is_none_or(|there| there.seconds < other.seconds)
    {
        *there = Some(other);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::samples;
    use super::*;
    use crate::explorer::campaign::scope::Profile;

    /// Returns the report of this shard of two.
    fn shard(index: usize) -> CampaignReport {
        CampaignReport { shard: Shard { index, of: 2 }, ..samples::report() }
    }

    #[test]
    fn all_shards_together_are_the_whole_campaign() {
        let second = CampaignReport {
            seconds: 4.0,
            job_seconds: 9.0,
            cpu: "Other".to_owned(),
            failures: Vec::new(),
            ..shard(1)
        };
        let merged = merge(vec![second, shard(0)]).expect("they belong together");
        assert_eq!(merged.shard, Shard::WHOLE);
        assert_eq!((merged.schedules, merged.jobs, merged.seconds, merged.job_seconds), (1400, 4, 4.0, 14.0));
        assert_eq!(merged.rate(), 100.0);
        assert_eq!(merged.cpu, "Other, Test CPU <fast>");
        let row = &merged.scenarios["rotate"];
        assert_eq!((row.schedules, row.crash_points, row.crash_points_expected), (800, 90, 90));
        assert_eq!(row.faults["lost-answer"], 60);
        assert_eq!(merged.failures, shard(0).failures);
        assert_eq!((merged.judged["I6"], merged.limited["I1"]), (1400, 8));
        assert!(merged.complete);
    }

    #[test]
    fn a_shard_that_was_cut_short_leaves_the_whole_incomplete() {
        let merged =
            merge(vec![shard(0), CampaignReport { complete: false, ..shard(1) }]).expect("they belong together");
        assert!(!merged.complete);
    }

    #[rstest]
    #[case::first(0)]
    #[case::last(1)]
    fn so_does_one_that_was_cut_short_before_its_first_schedule(#[case] index: usize) {
        let cut = CampaignReport { shard: shard(index).shard, ..samples::nothing() };
        let merged = merge(vec![cut, shard(1 - index)]).expect("they belong together");
        assert_eq!((merged.complete, merged.schedules, merged.scenarios.len()), (false, 700, 2));
    }

    #[test]
    fn the_longest_schedule_of_all_shards_is_kept() {
        let mut second = shard(1);
        let slow = Slow { line: "rotate 1 #5 hang".to_owned(), seconds: 99.0 };
        second.scenarios.get_mut("rotate").expect("it is there").slowest = Some(slow.clone());
        let merged = merge(vec![shard(0), second]).expect("they belong together");
        assert_eq!(merged.scenarios["rotate"].slowest, Some(slow));
    }

    #[rstest]
    #[case::nothing(vec![], "there is no report")]
    #[case::twice(vec![shard(0), shard(0)], "shard 0/2 is there twice")]
    #[case::missing(vec![shard(1)], "of 2 shards these are missing: 0/2")]
    #[case::many(vec![CampaignReport { shard: Shard { index: 0, of: 15 }, ..shard(0) }], "8/15, 9/15, 10/15 and 4 more")]
    #[case::build(vec![shard(0), CampaignReport { build: "other".to_owned(), ..shard(1) }], "its build is other, that of shard 0/2 is 0123")]
    #[case::seed(vec![shard(0), CampaignReport { seed: 7, ..shard(1) }], "its seed is 7, that of shard 0/2 is 1")]
    #[case::profile(vec![shard(0), CampaignReport { profile: Profile::Deep, ..shard(1) }], "its profile is deep")]
    #[case::schedules(vec![shard(0), CampaignReport { numbered: 7, ..shard(1) }], "its number of schedules is 7")]
    #[case::number(
        vec![shard(0), CampaignReport { shard: Shard { index: 1, of: 3 }, ..shard(1) }],
        "its number of shards is 3, that of shard 0/2 is 2"
    )]
    fn what_does_not_belong_together_is_refused(#[case] reports: Vec<CampaignReport>, #[case] problem: &str) {
        let error = merge(reports).expect_err("they don't belong together").to_string();
        assert!(error.contains(problem), "{error}");
    }

    #[test]
    fn shards_whose_scenarios_are_others_or_ran_differently_are_refused() {
        let mut fewer = shard(1);
        fewer.scenarios.remove("rotate");
        let error = merge(vec![shard(0), fewer]).expect_err("a scenario is missing").to_string();
        assert!(error.contains("its set of scenarios is create, that of shard 0/2 is create rotate"), "{error}");
        let mut other = shard(1);
        other.scenarios.get_mut("rotate").expect("it is there").hash = "else".to_owned();
        let error = merge(vec![shard(0), other]).expect_err("it went another way").to_string();
        assert!(error.contains("scenario rotate ran differently"), "{error}");
    }
}
