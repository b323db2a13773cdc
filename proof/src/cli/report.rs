//! Output of a report by `explore` and `merge`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anstream::AutoStream;
use terminal::{Output, Printing, print_json, printed};

use crate::explorer::CampaignReport;
use crate::explorer::report::document::Document;
use crate::explorer::report::{Conclusion, Drawings, html, junit, text};

/// Checks that the report can be written before an exploration takes hours. Creates a file in the
/// directory and removes it.
pub(super) fn prepare(directory: Option<&Path>) -> Result<(), String> {
    let Some(directory) = directory else { return Ok(()) };
    fs::create_dir_all(directory).map_err(|error| format!("can't make {}: {error}", directory.display()))?;
    // Each process has its own file name, because two may start at once.
    let probe = directory.join(format!(".stowage-proof-{}", std::process::id()));
    let probed = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
    probed.map_err(|error| format!("can't write into {}: {error}", directory.display()))
}

/// Prints a report, then writes it to the directory. If writing fails, hours of exploration are at
/// least printed. Returns an error if a part failed, or the error of [`verdict`].
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

/// Prints the location of the HTML page.
fn see(directory: &Path, printing: Printing) -> Result<(), String> {
    match printing.output {
        Output::Json => Ok(()),
        Output::Text => printed(writeln!(io::stdout(), "see {}", directory.join("index.html").display())),
    }
}

/// Returns an error if a promise was broken, if nothing was run, or if everything was explored and
/// required coverage is missing.
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
