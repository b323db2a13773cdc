//! What explore and merge do with a report.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anstream::AutoStream;
use terminal::{Output, Printing, print_json, printed};

use crate::explorer::CampaignReport;
use crate::explorer::report::document::Document;
use crate::explorer::report::{Conclusion, Drawings, html, junit, text};

/// Sees to it that a report can be written, before it takes hours to come to one: a file is made in
/// the directory, and removed.
pub(super) fn prepare(directory: Option<&Path>) -> Result<(), String> {
    let Some(directory) = directory else { return Ok(()) };
    fs::create_dir_all(directory).map_err(|error| format!("can't make {}: {error}", directory.display()))?;
    // Of its own for each process: two may begin at once.
    let probe = directory.join(format!(".stowage-proof-{}", std::process::id()));
    let probed = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
    probed.map_err(|error| format!("can't write into {}: {error}", directory.display()))
}

/// Prints a report, then writes it down: where that fails, hours have not been for nothing. An
/// error where any of it failed, and as [`verdict`] has it.
pub(super) fn publish(report: &CampaignReport, directory: Option<&Path>, printing: Printing) -> Result<(), String> {
    let told = print(report, printing);
    let written = directory.map_or(Ok(()), |directory| {
        write(report, directory)?;
        see(directory, printing)
    });
    let failed: Vec<String> = [verdict(report), told, written].into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

fn print(report: &CampaignReport, printing: Printing) -> Result<(), String> {
    match printing.output {
        Output::Json => print_json(&Document::of(report)),
        Output::Text => printed(text::write(&mut AutoStream::new(io::stdout(), printing.color.into()), report)),
    }
}

/// Tells people where the page is.
fn see(directory: &Path, printing: Printing) -> Result<(), String> {
    match printing.output {
        Output::Json => Ok(()),
        Output::Text => printed(writeln!(io::stdout(), "see {}", directory.join("index.html").display())),
    }
}

/// An error if a promise was broken, if nothing was run, or if everything was explored and not all
/// was met that has to be.
pub(super) fn verdict(report: &CampaignReport) -> Result<(), String> {
    match report.conclusion() {
        Conclusion::Kept | Conclusion::Part | Conclusion::Idle => Ok(()),
        conclusion @ Conclusion::Nothing => Err(format!("{conclusion} within {:.0} s", report.seconds)),
        conclusion @ Conclusion::Gaps => Err(format!("{conclusion}: {}", report.gaps().join(", "))),
        Conclusion::Broken(1) => Err(format!("one schedule of {} broke a promise", report.schedules)),
        Conclusion::Broken(many) => Err(format!("{many} of {} schedules broke a promise", report.schedules)),
    }
}

fn write(report: &CampaignReport, directory: &Path) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("can't write the report: {error}");
    let document = Document::of(report).to_text().map_err(|error| failed(&error))?;
    let tests = junit::to_text(report).map_err(|error| failed(&error))?;
    let page = html::page(report, &Drawings::play(report));
    for (name, text) in [("report.json", document), ("junit.xml", tests), ("index.html", page)] {
        let file = directory.join(name);
        fs::write(&file, text).map_err(|error| format!("can't write {}: {error}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_leaves_nothing_behind() {
        let home = tempfile::TempDir::new().expect("there is room");
        let directory = home.path().join("out/deep");
        prepare(Some(&directory)).expect("it can be written");
        assert_eq!(fs::read_dir(&directory).expect("it was made").count(), 0);
    }
}
