//! Text with a tone: the meaning of a piece of text, not its appearance.

/// The meaning of a piece of text. Renderers choose the appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// Text that the user would have typed, and column headers.
    Strong,
    /// A remark.
    Faint,
    /// The wanted state.
    Good,
    /// Work in progress.
    Busy,
    /// A refusal or a failure.
    Bad,
}

/// Text in one tone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The meaning of the text.
    pub tone: Tone,
    /// The text, without line breaks.
    pub text: String,
}

impl Span {
    /// Creates a span with a tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self::new(Tone::Plain, text)
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// A line of output.
pub type Line = Vec<Span>;
