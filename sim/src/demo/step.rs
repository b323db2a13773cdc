//! What the tour leaves behind: steps as data. How they look is the renderers' business.

use std::time::Instant;

use terminal::{Line, Span, Tone};

/// What a step shows, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The lines, top to bottom.
    pub lines: Vec<Line>,
}

impl Page {
    /// What a user would type to see what follows.
    pub fn command(&mut self, command: impl AsRef<str>) {
        self.lines.push(vec![Span::new(Tone::Strong, format!("$ {}", command.as_ref()))]);
    }

    /// A remark of the guide.
    pub fn remark(&mut self, text: impl AsRef<str>) {
        self.lines.push(vec![Span::new(Tone::Faint, format!("# {}", text.as_ref()))]);
    }

    /// A line as a program would print it.
    pub fn line(&mut self, span: impl Into<Span>) {
        self.lines.push(vec![span.into()]);
    }

    /// Lines made elsewhere, a table's for example.
    pub fn lines(&mut self, lines: Vec<Line>) {
        self.lines.extend(lines);
    }
}

/// What a step came to, in one sentence: what was seen, or what was seen in place of it.
pub type Finding = Result<String, String>;

/// A step of the tour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoStep {
    /// Its stable name, in kebab case.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Whether it went as the contract has it.
    pub ok: bool,
    /// What it took, in milliseconds of real time.
    pub millis: u64,
    /// One sentence that says what was seen.
    pub detail: String,
    /// What it shows.
    pub page: Page,
}

/// The whole tour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoReport {
    /// The steps taken, in their order; the tour ends early where going on makes no sense.
    pub steps: Vec<DemoStep>,
    /// Writes by the operator that Kubernetes carried out, Events among them.
    pub kubernetes_writes: u64,
    /// S3 calls by the operator.
    pub s3_calls: u64,
    /// What it took, in milliseconds of real time.
    pub millis: u64,
}

impl DemoReport {
    /// The first step that failed.
    pub fn failure(&self) -> Option<&DemoStep> {
        self.steps.iter().find(|step| !step.ok)
    }
}

/// Real time, for display only.
pub(super) fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}
