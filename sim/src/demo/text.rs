//! The tour as text for people: each step prints its result and then its output. Colours are escape
//! sequences, which the stream may strip.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use terminal::wrap;
use terminal::{Line, Tone};

use super::step::{DemoReport, DemoStep};

/// Maximum width of a line, in characters.
pub const WIDTH: usize = 100;

/// Indentation of a step's output.
const INDENT: usize = MARGIN.len();

/// The indentation, as wide as a step's mark and number.
const MARGIN: &str = "      ";

/// Maximum width of a step's output, in characters.
pub const PAGE_WIDTH: usize = WIDTH - INDENT;

/// Maximum number of lines of a page that consists only of a command. No blank line follows such a
/// page.
const COMMAND: usize = 2;

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

/// Writes the introduction before the first step.
///
/// # Errors
/// Returns errors of the stream.
pub fn write_introduction(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADING}Stowage: from a BucketClaim to a bucket with credentials of its own{HEADING:#}")?;
    writeln!(out, "A Kubernetes API, an S3 store, a gateway and the production operator, all in this process.")?;
    writeln!(out, "Their time is simulated: waiting takes none. Nothing outside of this process is touched.\n")
}

/// Writes step `number`: its mark, its title and its result, and then its output.
///
/// # Errors
/// Returns errors of the stream.
pub fn write_step(out: &mut impl Write, number: usize, step: &DemoStep) -> io::Result<()> {
    let (mark, style) = mark(step.ok);
    let title = format!("{}:", step.title);
    let told = wrap(&format!("{title} {}", step.detail), PAGE_WIDTH).join(&format!("\n{MARGIN}"));
    let told = told.strip_prefix(&title).unwrap_or(&told);
    writeln!(out, "{style}{mark}{style:#} {HEADING}{number:>2}. {title}{HEADING:#}{told}")?;
    for line in &step.page.lines {
        write_line(out, line)?;
    }
    if step.page.lines.len() > COMMAND {
        writeln!(out)?;
    }
    out.flush()
}

fn write_line(out: &mut impl Write, line: &Line) -> io::Result<()> {
    if !line.is_empty() {
        write!(out, "{MARGIN}")?;
    }
    for span in line {
        let style = style(span.tone);
        // Spaces have no colour, and escape sequences at the end of a line have no effect.
        let text = span.text.trim_end();
        write!(out, "{style}{text}{style:#}{}", &span.text[text.len()..])?;
    }
    writeln!(out)
}

/// Writes the summary after the last step.
///
/// # Errors
/// Returns errors of the stream.
pub fn write_summary(out: &mut impl Write, report: &DemoReport) -> io::Result<()> {
    let failed = report.steps.iter().filter(|step| !step.ok).count();
    let (mark, style) = mark(failed == 0);
    let verdict = match failed {
        0 => format!("all {} steps went as they should", report.steps.len()),
        failed => format!("{failed} of {} steps failed", report.steps.len()),
    };
    writeln!(out, "{style}{mark} {verdict}{style:#}")?;
    let tenths = (report.millis + 50) / 100;
    let (writes, calls) = (report.kubernetes_writes, report.s3_calls);
    writeln!(out, "{writes} Kubernetes writes and {calls} S3 calls by the operator, {}.{} s", tenths / 10, tenths % 10)
}

fn mark(ok: bool) -> (&'static str, Style) {
    if ok { ("✓", style(Tone::Good).bold()) } else { ("✗", style(Tone::Bad).bold()) }
}

#[cfg(test)]
mod tests {
    use terminal::Span;

    use super::super::step::Page;
    use super::*;

    fn step(ok: bool) -> DemoStep {
        let mut page = Page::default();
        page.command("kubectl get s3backends");
        page.lines(vec![vec![Span::new(Tone::Good, "True   "), Span::from("main")]; 2]);
        DemoStep { name: "backend-ready", title: "Backends", ok, millis: 7, detail: "seen".to_owned(), page }
    }

    fn plain(bytes: &[u8]) -> String {
        anstream::adapter::strip_bytes(bytes).into_vec().try_into().expect("UTF-8")
    }

    #[test]
    fn a_step_says_what_it_came_to_and_shows_it() {
        let mut out = Vec::new();
        write_step(&mut out, 2, &step(true)).expect("a vector takes everything");
        assert_eq!(
            plain(&out),
            "✓  2. Backends: seen\n      $ kubectl get s3backends\n      True   main\n      True   main\n\n"
        );
        let mut out = Vec::new();
        let page = Page::default();
        write_step(&mut out, 12, &DemoStep { page, ..step(false) }).expect("a vector takes everything");
        assert_eq!(plain(&out), "✗ 12. Backends: seen\n");
    }

    #[test]
    fn what_is_too_long_goes_on_below_itself() {
        let detail = ["word"; 30].join(" ");
        let mut out = Vec::new();
        write_step(&mut out, 2, &DemoStep { detail, page: Page::default(), ..step(true) }).expect("a vector");
        let text = plain(&out);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 2 && lines[1].starts_with("      word"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn colours_end_before_the_blanks_between_columns() {
        let mut out = Vec::new();
        write_line(&mut out, &step(true).page.lines[1]).expect("a vector takes everything");
        assert_eq!(String::from_utf8(out).expect("UTF-8"), "      \u{1b}[32mTrue\u{1b}[0m   main\n");
    }

    #[test]
    fn the_last_line_counts() {
        let report = DemoReport { steps: vec![step(true)], kubernetes_writes: 12, s3_calls: 9, millis: 449 };
        let mut out = Vec::new();
        write_summary(&mut out, &report).expect("a vector takes everything");
        let text = plain(&out);
        assert_eq!(text.lines().last(), Some("12 Kubernetes writes and 9 S3 calls by the operator, 0.4 s"));
    }
}
