//! Text in tones: how a piece is meant, not how it looks.

/// How a piece of text is meant; renderers decide what that looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// What the user would have typed, and column heads.
    Strong,
    /// A remark.
    Faint,
    /// As one would wish.
    Good,
    /// Under way.
    Busy,
    /// Refused or failed.
    Bad,
}

/// Text in one tone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// How it is meant.
    pub tone: Tone,
    /// The text, without line breaks.
    pub text: String,
}

impl Span {
    /// Text in a tone.
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
