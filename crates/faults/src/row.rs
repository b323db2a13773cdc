//! What a table says of a fault: how it is written, which calls it is for, how long it lasts, how
//! it is applied.

use std::fmt;
use std::time::Duration;

use crate::answer::Answered;
use crate::call::{Call, CallKind, CrashPoint, KubeVerb, S3Operation};
use crate::feature::Feature;
use crate::standstill::Stop;

/// A family of faults: an enum whose table is [`Vocabulary::row`].
///
/// The families of this crate are [`CallFault`](crate::CallFault),
/// [`ProcessFault`](crate::ProcessFault), [`ClockFault`](crate::ClockFault),
/// [`KubeFault`](crate::KubeFault) and [`S3Fault`](crate::S3Fault). A project brings one of its own
/// for what its users and third parties do; one that has none uses [`Nobody`].
pub trait Vocabulary: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// Every fault that is worth trying: those with words in their brackets for each word, those
    /// with a number for each number that makes a difference.
    fn all() -> Vec<Self>;

    /// The fault's row.
    fn row(self) -> Row<Self>;

    /// What the server says that refuses a call in its own words, for a fault that is applied by
    /// [`Application::Answer`].
    fn answer(self, _call: &Call) -> Option<Answered> {
        None
    }
}

/// Everything there is to know of a fault but what its answer says.
#[derive(Clone, Debug)]
pub struct Row<F> {
    /// Its name in a plan.
    pub word: &'static str,
    /// Its name where faults are counted, if another fault has the same one in a plan.
    pub kind: &'static str,
    /// What stands in brackets after the name.
    pub parameter: Parameter<F>,
    /// The calls that it may be planned for.
    pub calls: Calls,
    /// Of these and of later ones, the calls that it does something to.
    pub meets: Calls,
    /// How long it lasts.
    pub lasts: Lasts,
    /// How it is applied.
    pub applied: Application,
}

impl<F> Row<F> {
    /// A fault without brackets that is over with its call.
    pub fn new(word: &'static str, calls: Calls, applied: Application) -> Self {
        Self { word, kind: word, parameter: Parameter::None, calls, meets: Calls::ANY, lasts: Lasts::ItsCall, applied }
    }

    /// The same with this in brackets.
    #[must_use]
    pub fn with(self, parameter: Parameter<F>) -> Self {
        Self { parameter, ..self }
    }

    /// The same, lasting so long.
    #[must_use]
    pub fn lasting(self, lasts: Lasts) -> Self {
        Self { lasts, ..self }
    }

    /// The same, which does nothing to other calls than these, though it may begin at one.
    #[must_use]
    pub fn meeting(self, meets: Calls) -> Self {
        Self { meets, ..self }
    }

    /// The same, called otherwise where faults are counted.
    #[must_use]
    pub fn counted_as(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }
}

/// What stands in a fault's brackets.
///
/// `with` makes the fault with another number; words are found by going through
/// [`Vocabulary::all`].
#[derive(Clone, Debug)]
pub enum Parameter<F> {
    /// There are none.
    None,
    /// One of a closed set of words.
    Word(&'static str),
    /// A word that [`Vocabulary::all`] doesn't go through: `form` says what it is, such as
    /// `operation`.
    Open {
        /// The word.
        word: &'static str,
        /// What it is.
        form: &'static str,
        /// The fault with another word; `None` if there is no such word.
        with: fn(&str) -> Option<F>,
    },
    /// A count, from 0.
    Count {
        /// How many.
        count: u32,
        /// The fault with another number.
        with: fn(u32) -> F,
    },
    /// A time in milliseconds.
    Millis {
        /// How many.
        millis: u64,
        /// The fault with another number.
        with: fn(u64) -> F,
    },
    /// A time in seconds.
    Seconds {
        /// How many.
        seconds: u32,
        /// The fault with another number.
        with: fn(u32) -> F,
    },
    /// A time in seconds, forward or back.
    Signed {
        /// How many.
        seconds: i32,
        /// The fault with another number.
        with: fn(i32) -> F,
    },
    /// One of a closed set of words, and a time in seconds, forward or back.
    WordAndSigned {
        /// The word.
        word: &'static str,
        /// How many seconds.
        seconds: i32,
        /// Words and number to fault; `None` if there is no such word.
        with: fn(&str, i32) -> Option<F>,
    },
}

impl<F> Parameter<F> {
    /// The time in the brackets in seconds, forward or back, rounded up; 0 where there is none.
    pub(crate) fn seconds(&self) -> u64 {
        match self {
            Self::Millis { millis, .. } => millis.div_ceil(1000),
            Self::Seconds { seconds, .. } => (*seconds).into(),
            Self::Signed { seconds, .. } | Self::WordAndSigned { seconds, .. } => seconds.unsigned_abs().into(),
            Self::None | Self::Word(_) | Self::Open { .. } | Self::Count { .. } => 0,
        }
    }

    /// The fault with this in its brackets, unless it is a word of a closed set.
    pub(crate) fn read(&self, text: &str) -> Option<F> {
        match self {
            Self::None | Self::Word(_) => None,
            Self::Open { with, .. } => with(text),
            Self::Count { with, .. } | Self::Seconds { with, .. } => text.parse().ok().map(with),
            Self::Millis { with, .. } => text.parse().ok().map(with),
            Self::Signed { with, .. } => text.parse().ok().map(with),
            Self::WordAndSigned { with, .. } => {
                let (word, seconds) = text.split_once(',')?;
                with(word, seconds.parse().ok()?)
            }
        }
    }
}

impl<F> fmt::Display for Parameter<F> {
    /// What stands in brackets, without them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Word(word) | Self::Open { word, .. } => f.write_str(word),
            Self::Count { count, .. } => write!(f, "{count}"),
            Self::Millis { millis, .. } => write!(f, "{millis}"),
            Self::Seconds { seconds, .. } => write!(f, "{seconds}"),
            Self::Signed { seconds, .. } => write!(f, "{seconds:+}"),
            Self::WordAndSigned { word, seconds, .. } => write!(f, "{word},{seconds:+}"),
        }
    }
}

/// A set of calls, and how it is called.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    kinds: Kinds,
    words: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Kinds {
    Any,
    Kube(fn(KubeVerb) -> bool),
    S3(fn(S3Operation) -> bool),
    Operation(S3Operation),
    Feature(Feature),
}

impl Calls {
    /// All calls.
    pub const ANY: Self = Self { kinds: Kinds::Any, words: "any call" };

    /// Calls to the Kubernetes API, by their verb.
    pub const fn kube(fits: fn(KubeVerb) -> bool, words: &'static str) -> Self {
        Self { kinds: Kinds::Kube(fits), words }
    }

    /// Calls to a store, by their operation.
    pub const fn s3(fits: fn(S3Operation) -> bool, words: &'static str) -> Self {
        Self { kinds: Kinds::S3(fits), words }
    }

    /// Calls of this operation.
    pub(crate) fn operation(operation: S3Operation) -> Self {
        Self { kinds: Kinds::Operation(operation), words: operation.name() }
    }

    /// Calls of the operations that a feature consists of.
    pub(crate) fn feature(feature: Feature) -> Self {
        Self { kinds: Kinds::Feature(feature), words: "the S3 operations of that feature" }
    }

    /// Whether calls of this kind are among them.
    pub fn contain(&self, kind: CallKind) -> bool {
        match (self.kinds, kind) {
            (Kinds::Any, _) => true,
            (Kinds::Kube(fits), CallKind::Kube(verb)) => fits(verb),
            (Kinds::S3(fits), CallKind::S3(operation)) => fits(operation),
            (Kinds::Operation(one), CallKind::S3(operation)) => one == operation,
            (Kinds::Feature(feature), CallKind::S3(operation)) => feature.has(operation),
            (Kinds::Kube(_), CallKind::S3(_))
            | (Kinds::S3(_) | Kinds::Operation(_) | Kinds::Feature(_), CallKind::Kube(_)) => false,
        }
    }

    /// What they are called in an error.
    pub fn words(&self) -> &'static str {
        self.words
    }
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// It is over with its call.
    ItsCall,
    /// It meets no other call, but leaves something behind, or goes on for as long as its call
    /// does.
    Beyond,
    /// It meets each call that comes within this time.
    For(Duration),
    /// It meets each call that comes until the end of the run.
    ToTheEnd,
    /// It is about the whole run, wherever in it it stands.
    WholeRun,
}

/// How a fault is applied to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// The request never arrives, and the connection breaks.
    RequestLost,
    /// The request is carried out, then the connection breaks.
    AnswerLost,
    /// Nobody listens: the connection is refused.
    NoListener,
    /// The request never arrives, and no answer ever comes.
    Silence,
    /// The request takes so long to arrive.
    Delay(Duration),
    /// The process stands still before it sends the request.
    Standstill(Stop),
    /// The process dies at this point of the call.
    Crash(CrashPoint),
    /// The server refuses in its own words, which are [`Vocabulary::answer`].
    Answer(Refusal),
    /// The world lets it happen, see [`Surroundings`](crate::Surroundings); then the request goes
    /// on.
    World,
    /// The world lets it happen; then the server refuses in its own words.
    WorldThenAnswer,
}

/// When a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// At once: the request is not carried out.
    AtOnce,
    /// After so long: the request is not carried out.
    After(Duration),
    /// When the request was carried out nevertheless.
    CarriedOut,
}

impl Application {
    /// Whether it is for the world to let it happen.
    pub fn needs_world(self) -> bool {
        matches!(self, Self::World | Self::WorldThenAnswer)
    }
}

/// The vocabulary of a project without faults of its own: there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nobody {}

impl Vocabulary for Nobody {
    fn all() -> Vec<Self> {
        Vec::new()
    }

    fn row(self) -> Row<Self> {
        match self {}
    }
}
