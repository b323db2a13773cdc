//! Rows of the tables of faults: form in a plan, calls, duration, and application of a fault.

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
/// [`KubeFault`](crate::KubeFault) and [`S3Fault`](crate::S3Fault). A project adds its own family
/// for its users and third parties; a project without one uses [`Nobody`].
pub trait Vocabulary: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// Returns every fault that is worth trying: for a fault with a word, each word; for a fault
    /// with a number, each number that makes a difference.
    fn all() -> Vec<Self>;

    /// Returns the fault's row.
    fn row(self) -> Row<Self>;

    /// Returns the server's answer to a call, for a fault with [`Application::Answer`].
    fn answer(self, _call: &Call) -> Option<Answered> {
        None
    }
}

/// All properties of a fault except its answer.
#[derive(Clone, Debug)]
pub struct Row<F> {
    /// Name of the fault in a plan.
    pub word: &'static str,
    /// Name of the fault in counts, if another fault has the same name in a plan.
    pub kind: &'static str,
    /// Parameter in brackets after the name.
    pub parameter: Parameter<F>,
    /// Calls for which the fault may be planned.
    pub calls: Calls,
    /// Calls that the fault affects, from the planned call on.
    pub meets: Calls,
    /// Duration of the fault.
    pub lasts: Lasts,
    /// Application of the fault.
    pub applied: Application,
}

impl<F> Row<F> {
    /// Creates a row for a fault without a parameter that ends with its call.
    pub fn new(word: &'static str, calls: Calls, applied: Application) -> Self {
        Self { word, kind: word, parameter: Parameter::None, calls, meets: Calls::ANY, lasts: Lasts::ItsCall, applied }
    }

    /// Sets the parameter in brackets.
    #[must_use]
    pub fn with(self, parameter: Parameter<F>) -> Self {
        Self { parameter, ..self }
    }

    /// Sets the duration.
    #[must_use]
    pub fn lasting(self, lasts: Lasts) -> Self {
        Self { lasts, ..self }
    }

    /// Restricts the calls that it affects. It may begin at any of its `calls`.
    #[must_use]
    pub fn meeting(self, meets: Calls) -> Self {
        Self { meets, ..self }
    }

    /// Sets another name for counting.
    #[must_use]
    pub fn counted_as(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }
}

/// Parameter in a fault's brackets.
///
/// `with` creates the fault with another number. Words are found by iterating over
/// [`Vocabulary::all`].
#[derive(Clone, Debug)]
pub enum Parameter<F> {
    /// No parameter.
    None,
    /// One of a closed set of words.
    Word(&'static str),
    /// A word that [`Vocabulary::all`] does not enumerate. `form` is its placeholder, such as
    /// `operation`.
    Open {
        /// The word.
        word: &'static str,
        /// The placeholder.
        form: &'static str,
        /// Returns the fault with another word; `None` if there is no such word.
        with: fn(&str) -> Option<F>,
    },
    /// A count, from 0.
    Count {
        /// The count.
        count: u32,
        /// Returns the fault with another number.
        with: fn(u32) -> F,
    },
    /// A time in milliseconds.
    Millis {
        /// The milliseconds.
        millis: u64,
        /// Returns the fault with another number.
        with: fn(u64) -> F,
    },
    /// A time in seconds.
    Seconds {
        /// The seconds.
        seconds: u32,
        /// Returns the fault with another number.
        with: fn(u32) -> F,
    },
    /// A time in seconds, positive or negative.
    Signed {
        /// The seconds.
        seconds: i32,
        /// Returns the fault with another number.
        with: fn(i32) -> F,
    },
    /// One of a closed set of words, and a time in seconds, positive or negative.
    WordAndSigned {
        /// The word.
        word: &'static str,
        /// The seconds.
        seconds: i32,
        /// Returns the fault with another word and number; `None` if there is no such word.
        with: fn(&str, i32) -> Option<F>,
    },
}

impl<F> Parameter<F> {
    /// Returns the absolute time in the brackets in seconds, rounded up; 0 if there is none.
    pub(crate) fn seconds(&self) -> u64 {
        match self {
            Self::Millis { millis, .. } => millis.div_ceil(1000),
            Self::Seconds { seconds, .. } => (*seconds).into(),
            Self::Signed { seconds, .. } | Self::WordAndSigned { seconds, .. } => seconds.unsigned_abs().into(),
            Self::None | Self::Word(_) | Self::Open { .. } | Self::Count { .. } => 0,
        }
    }

    /// Parses a parameter and returns its fault; `None` for a word of a closed set.
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
    /// Formats the parameter without the brackets.
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

/// A set of calls with a description.
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

    /// Creates a set of calls to the Kubernetes API, selected by verb.
    pub const fn kube(fits: fn(KubeVerb) -> bool, words: &'static str) -> Self {
        Self { kinds: Kinds::Kube(fits), words }
    }

    /// Creates a set of calls to a store, selected by operation.
    pub const fn s3(fits: fn(S3Operation) -> bool, words: &'static str) -> Self {
        Self { kinds: Kinds::S3(fits), words }
    }

    /// Creates the set of calls of this operation.
    pub(crate) fn operation(operation: S3Operation) -> Self {
        Self { kinds: Kinds::Operation(operation), words: operation.name() }
    }

    /// Creates the set of calls of a feature's operations.
    pub(crate) fn feature(feature: Feature) -> Self {
        Self { kinds: Kinds::Feature(feature), words: "the S3 operations of that feature" }
    }

    /// Returns true if the set has calls of this kind.
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

    /// Returns the description for an error message.
    pub fn words(&self) -> &'static str {
        self.words
    }
}

/// Duration of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// Ends with its call.
    ItsCall,
    /// Affects no other call, but leaves something behind, or lasts as long as its call does.
    Beyond,
    /// Affects each call within this time.
    For(Duration),
    /// Affects each call until the end of the run.
    ToTheEnd,
    /// Applies to the whole run, regardless of its effect pattern.
    WholeRun,
}

/// Application of a fault to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// The request never arrives, and the connection breaks.
    RequestLost,
    /// The request is carried out, then the connection breaks.
    AnswerLost,
    /// The connection is refused.
    NoListener,
    /// The request never arrives, and no answer comes.
    Silence,
    /// The request takes this long to arrive.
    Delay(Duration),
    /// The process is suspended before it sends the request.
    Standstill(Stop),
    /// The process crashes at this point of the call.
    Crash(CrashPoint),
    /// The server refuses with [`Vocabulary::answer`].
    Answer(Refusal),
    /// The world applies it, see [`Surroundings`](crate::Surroundings); then the request is sent.
    World,
    /// The world applies it; then the server refuses with [`Vocabulary::answer`].
    WorldThenAnswer,
}

/// Time and effect of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// At once: the request is not carried out.
    AtOnce,
    /// After this time; the request is not carried out.
    After(Duration),
    /// After the request was carried out.
    CarriedOut,
}

impl Application {
    /// Returns true if only the world can apply it.
    pub fn needs_world(self) -> bool {
        matches!(self, Self::World | Self::WorldThenAnswer)
    }
}

/// The empty family, for a project without its own faults.
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
