//! What explore and merge do with a report.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anstream::AutoStream;

use super::{Output, Printing, print_json, printed};
use crate::explorer::Report;
use crate::explorer::report::document::Document;
use crate::explorer::report::{Drawings, html, junit, text};

/// Sees to it that a report can be written, before it takes hours to come to one.
pub(super) fn prepare(directory: Option<&Path>) -> Result<(), String> {
    let Some(directory) = directory else { return Ok(()) };
    fs::create_dir_all(directory).map_err(|error| format!("can't make {}: {error}", directory.display()))
}

/// Prints a report and writes it down; an error as [`verdict`] has it.
pub(super) fn publish(report: &Report, directory: Option<&Path>, printing: Printing) -> Result<(), String> {
    if let Some(directory) = directory {
        write(report, directory)?;
    }
    match printing.output {
        Output::Json => print_json(&Document::of(report))?,
        Output::Text => {
            let mut out = AutoStream::new(io::stdout(), printing.color.into());
            let written = text::write(&mut out, report);
            printed(written.and_then(|()| match directory {
                Some(directory) => writeln!(out, "see {}", directory.join("index.html").display()),
                None => Ok(()),
            }))?;
        }
    }
    verdict(report)
}

/// An error if a promise was broken, or if everything was explored and not all was met that has to be.
pub(super) fn verdict(report: &Report) -> Result<(), String> {
    let gaps = report.gaps();
    match report.failures.len() {
        0 if gaps.is_empty() => Ok(()),
        0 => Err(format!("no promise was broken, but not all was tried: {}", gaps.join(", "))),
        1 => Err(format!("one schedule of {} broke a promise", report.schedules)),
        many => Err(format!("{many} of {} schedules broke a promise", report.schedules)),
    }
}

fn write(report: &Report, directory: &Path) -> Result<(), String> {
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
