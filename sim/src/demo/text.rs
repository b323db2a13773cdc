//! The tour for people: a headed section for each step. Colours are escapes, which the stream given may strip.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::step::{Line, Report, Step, Tone};
use super::table::wrap;

/// Width that everything fits into, in characters.
pub const WIDTH: usize = 100;

/// Blanks before what a step shows.
const INDENT: usize = 2;

/// Width of what a step shows, in characters.
pub const PAGE_WIDTH: usize = WIDTH - INDENT;

const HEADING: Style = AnsiColor::Cyan.on_default().bold();

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => Style::new().bold(),
        Tone::Faint => Style::new().dimmed(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Busy => AnsiColor::Yellow.on_default(),
        Tone::Bad => AnsiColor::Red.on_default(),
    }
}

/// Writes what comes before the first step.
///
/// # Errors
/// Those of the stream.
pub fn write_introduction(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADING}Stowage: from a BucketClaim to a bucket with credentials of its own{HEADING:#}")?;
    writeln!(out)?;
    writeln!(out, "A Kubernetes API, an S3 store, a gateway and the production operator, all in this process.")?;
    writeln!(out, "Their time is simulated: waiting takes none. Nothing outside of this process is touched.")
}

/// Writes a step, the `number`th.
///
/// # Errors
/// Those of the stream.
pub fn write_step(out: &mut impl Write, number: usize, step: &Step) -> io::Result<()> {
    writeln!(out, "\n{HEADING}{number}. {}{HEADING:#}\n", step.title)?;
    for line in &step.page.lines {
        write_line(out, line)?;
    }
    if !step.page.lines.is_empty() {
        writeln!(out)?;
    }
    let (mark, style) = mark(step.ok);
    for (index, line) in wrap(&step.detail, PAGE_WIDTH - INDENT).iter().enumerate() {
        let mark = if index == 0 { mark } else { " " };
        writeln!(out, "{:INDENT$}{style}{mark} {line}{style:#}", "")?;
    }
    out.flush()
}

fn write_line(out: &mut impl Write, line: &Line) -> io::Result<()> {
    if !line.is_empty() {
        write!(out, "{:INDENT$}", "")?;
    }
    for span in line {
        let style = style(span.tone);
        // A blank has no colour, and escapes at the end of a line serve nobody.
        let text = span.text.trim_end();
        write!(out, "{style}{text}{style:#}{}", &span.text[text.len()..])?;
    }
    writeln!(out)
}

/// Writes what comes after the last step.
///
/// # Errors
/// Those of the stream.
pub fn write_summary(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let failed = report.steps.iter().filter(|step| !step.ok).count();
    let (mark, style) = mark(failed == 0);
    let verdict = match failed {
        0 => format!("all {} steps went as they should", report.steps.len()),
        failed => format!("{failed} of {} steps failed", report.steps.len()),
    };
    writeln!(out, "\n{style}{mark} {verdict}{style:#}")?;
    let tenths = (report.millis + 50) / 100;
    let (writes, calls) = (report.kubernetes_writes, report.s3_calls);
    writeln!(out, "{writes} Kubernetes writes and {calls} S3 calls by the operator, {}.{} s", tenths / 10, tenths % 10)
}

fn mark(ok: bool) -> (&'static str, Style) {
    if ok { ("✓", style(Tone::Good).bold()) } else { ("✗", style(Tone::Bad).bold()) }
}

#[cfg(test)]
mod tests {
    use super::super::step::{Page, Span};
    use super::*;

    fn step(ok: bool) -> Step {
        let mut page = Page::default();
        page.command("kubectl get s3backends");
        page.lines(vec![vec![Span::new(Tone::Good, "True   "), Span::from("main")]]);
        Step { name: "backend-ready", title: "Backends", ok, millis: 7, detail: "seen".to_owned(), page }
    }

    fn plain(bytes: &[u8]) -> String {
        anstream::adapter::strip_bytes(bytes).into_vec().try_into().expect("UTF-8")
    }

    #[test]
    fn a_step_is_a_headed_section_that_ends_with_its_mark() {
        let mut out = Vec::new();
        write_step(&mut out, 2, &step(true)).expect("a vector takes everything");
        assert_eq!(plain(&out), "\n2. Backends\n\n  $ kubectl get s3backends\n  True   main\n\n  ✓ seen\n");
        let mut out = Vec::new();
        write_step(&mut out, 2, &step(false)).expect("a vector takes everything");
        assert!(plain(&out).ends_with("  ✗ seen\n"));
    }

    #[test]
    fn colours_end_before_the_blanks_between_columns() {
        let mut out = Vec::new();
        write_line(&mut out, &step(true).page.lines[1]).expect("a vector takes everything");
        assert_eq!(String::from_utf8(out).expect("UTF-8"), "  \u{1b}[32mTrue\u{1b}[0m   main\n");
    }

    #[test]
    fn the_last_line_counts() {
        let report = Report { steps: vec![step(true)], kubernetes_writes: 12, s3_calls: 9, millis: 449 };
        let mut out = Vec::new();
        write_summary(&mut out, &report).expect("a vector takes everything");
        let text = plain(&out);
        assert_eq!(text.lines().last(), Some("12 Kubernetes writes and 9 S3 calls by the operator, 0.4 s"));
    }
}
