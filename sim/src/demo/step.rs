//! The result of the tour: steps as data. Renderers choose their appearance.

use std::time::Instant;

use terminal::{Line, Span, Tone};

/// The output of a step, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The lines, top to bottom.
    pub lines: Vec<Line>,
}

impl Page {
    /// Adds the command that a user would type to see the following lines.
    pub fn command(&mut self, command: impl AsRef<str>) {
        self.lines.push(vec![Span::new(Tone::Strong, format!("$ {}", command.as_ref()))]);
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: impl AsRef<str>) {
        self.lines.push(vec![Span::new(Tone::Faint, format!("# {}", text.as_ref()))]);
    }

    /// Adds a line of program output.
    pub fn line(&mut self, span: impl Into<Span>) {
        self.lines.push(vec![span.into()]);
    }

    /// Adds lines, of a table for example.
    pub fn lines(&mut self, lines: Vec<Line>) {
        self.lines.extend(lines);
    }
}

/// The result of a step in one sentence: the expected observation, or the actual one if it differs.
pub type Finding = Result<String, String>;

/// A step of the tour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoStep {
    /// Stable name of the step, in kebab case.
    pub name: &'static str,
    /// Heading of the step.
    pub title: &'static str,
    /// True if the step went as the spec requires.
    pub ok: bool,
    /// Duration in milliseconds of real time.
    pub millis: u64,
    /// The observation in one sentence.
    pub detail: String,
    /// The output.
    pub page: Page,
}

/// The whole tour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoReport {
    /// The steps in order. The tour ends early if the next steps depend on a failed one.
    pub steps: Vec<DemoStep>,
    /// Writes of the operator to the Kubernetes API that succeeded, including Events.
    pub kubernetes_writes: u64,
    /// S3 calls by the operator.
    pub s3_calls: u64,
    /// Duration in milliseconds of real time.
    pub millis: u64,
}

impl DemoReport {
    /// Returns the first step that failed.
    pub fn failure(&self) -> Option<&DemoStep> {
        self.steps.iter().find(|step| !step.ok)
    }
}

/// Returns the milliseconds of real time since `began`, for display only.
pub(super) fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}
