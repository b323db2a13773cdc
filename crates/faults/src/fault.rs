//! The faults: those of all families, and those that a project brings.

use std::fmt;

use crate::answer::Answered;
use crate::call::{Call, CallKind};
use crate::families::{CallFault, ClockFault, KubeFault, ProcessFault, S3Fault};
use crate::row::{Application, Lasts, Nobody, Parameter, Vocabulary};

/// The longest time that may stand in a fault's brackets, in seconds: a day. In a longer one a
/// controller's own probes alone are more calls than a run may have.
pub(crate) const LONGEST: u32 = 86_400;

/// What is done to a call. `V` is what the project's own users and third parties do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<V = Nobody> {
    /// What can happen to any call.
    Call(CallFault),
    /// What can happen to the process that makes it.
    Process(ProcessFault),
    /// What can happen to that process's wall clock.
    Clock(ClockFault),
    /// What can happen to a call to the Kubernetes API.
    Kube(KubeFault),
    /// What can happen to a call to a store.
    S3(S3Fault),
    /// What the project's own people and programs do.
    Project(V),
}

macro_rules! from_families {
    ($($family:ident => $variant:ident,)*) => {
        $(impl<V> From<$family> for Fault<V> {
            fn from(fault: $family) -> Self {
                Self::$variant(fault)
            }
        })*
    };
}

from_families! {
    CallFault => Call,
    ProcessFault => Process,
    ClockFault => Clock,
    KubeFault => Kube,
    S3Fault => S3,
}

/// The same said of a fault of any family.
macro_rules! of_family {
    ($fault:expr, $one:ident => $said:expr) => {
        match $fault {
            Fault::Call($one) => $said,
            Fault::Process($one) => $said,
            Fault::Clock($one) => $said,
            Fault::Kube($one) => $said,
            Fault::S3($one) => $said,
            Fault::Project($one) => $said,
        }
    };
}

/// Why a word is no fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misspelt {
    /// There is no fault of that name.
    Name,
    /// There is, but not with this in its brackets.
    Parameter,
    /// There is, but not with so long a time in its brackets.
    TooLong,
}

impl<V: Vocabulary> Fault<V> {
    /// Every fault once, those with a parameter for each word or for the numbers that are worth
    /// trying. A matrix of all single faults goes through these.
    pub fn all_single() -> Vec<Self> {
        let call = CallFault::all().into_iter().map(Self::Call);
        let process = ProcessFault::all().into_iter().map(Self::Process);
        let clock = ClockFault::all().into_iter().map(Self::Clock);
        let kube = KubeFault::all().into_iter().map(Self::Kube);
        let s3 = S3Fault::all().into_iter().map(Self::S3);
        let project = V::all().into_iter().map(Self::Project);
        call.chain(process).chain(clock).chain(kube).chain(project).chain(s3).collect()
    }

    /// Its name, without what may stand in brackets.
    pub fn name(self) -> &'static str {
        of_family!(self, it => it.row().word)
    }

    /// Its name where faults are counted, which no other has: that a name is taken is called the
    /// same of objects and of buckets.
    pub fn kind(self) -> &'static str {
        of_family!(self, it => it.row().kind)
    }

    /// Whether it may be planned for a call of this kind.
    ///
    /// # Errors
    ///
    /// Says which calls the fault is for.
    pub fn check(self, kind: CallKind) -> Result<(), &'static str> {
        let calls = of_family!(self, it => it.row().calls);
        if calls.contain(kind) { Ok(()) } else { Err(calls.words()) }
    }

    /// Whether the call itself is met, and not only later ones: a verb may go down at a call of
    /// another.
    pub fn concerns(self, call: &Call) -> bool {
        of_family!(self, it => it.row().meets).contain(call.kind())
    }

    /// How long it lasts.
    pub fn lasts(self) -> Lasts {
        of_family!(self, it => it.row().lasts)
    }

    /// Whether it is about the whole run, wherever in it it stands.
    pub fn is_of_run(self) -> bool {
        self.lasts() == Lasts::WholeRun
    }

    /// Whether it may go on, or leave something behind, once its call is answered: a clock that is
    /// off, a watch that hides something, a feature or a verb that the store is without, an
    /// object that can't be deleted.
    pub fn outlasts_its_call(self) -> bool {
        self.lasts() != Lasts::ItsCall
    }

    /// How it is applied.
    pub fn applied(self) -> Application {
        of_family!(self, it => it.row().applied)
    }

    /// What the server says that refuses; `None` if the fault refuses nothing, or no such call.
    pub(crate) fn answer(self, call: &Call) -> Option<Answered> {
        of_family!(self, it => it.answer(call))
    }

    /// Reads a fault as a plan writes it; the brackets are told apart from the name already.
    pub(crate) fn read(name: &str, parameter: Option<&str>) -> Result<Self, Misspelt> {
        let known: Vec<Self> = Self::all_single().into_iter().filter(|fault| fault.name() == name).collect();
        if known.is_empty() {
            return Err(Misspelt::Name);
        }
        let found = known.iter().find_map(|fault| fault.with(parameter));
        if found.is_some_and(|fault| of_family!(fault, it => it.row().parameter.seconds()) > LONGEST.into()) {
            return Err(Misspelt::TooLong);
        }
        let takes_none = known.iter().all(|fault| fault.brackets().is_none());
        found.ok_or(if takes_none { Misspelt::Name } else { Misspelt::Parameter })
    }

    /// This fault with that in its brackets, if it can have it.
    fn with(self, parameter: Option<&str>) -> Option<Self> {
        fn with<F: Vocabulary>(fault: F, parameter: Option<&str>) -> Option<F> {
            match (fault.row().parameter, parameter) {
                (Parameter::None, None) => Some(fault),
                (Parameter::Word(word), Some(text)) if word == text => Some(fault),
                (other, Some(text)) => other.read(text),
                (_, None) => None,
            }
        }
        match self {
            Self::Call(it) => with(it, parameter).map(Self::Call),
            Self::Process(it) => with(it, parameter).map(Self::Process),
            Self::Clock(it) => with(it, parameter).map(Self::Clock),
            Self::Kube(it) => with(it, parameter).map(Self::Kube),
            Self::S3(it) => with(it, parameter).map(Self::S3),
            Self::Project(it) => with(it, parameter).map(Self::Project),
        }
    }

    /// What may stand in this fault's brackets; `None` of one without brackets.
    fn brackets(self) -> Option<Brackets> {
        of_family!(self, it => Brackets::of(&it.row().parameter))
    }

    /// How the faults of a name are written, or all there are:
    /// `crash(before|after-effect|after-answer), conflict`.
    pub fn forms(of: Option<&str>) -> String {
        let mut forms: Vec<(&str, Option<Brackets>)> = Vec::new();
        for fault in Self::all_single().into_iter().filter(|fault| of.is_none_or(|of| of == fault.name())) {
            let (name, brackets) = (fault.name(), fault.brackets());
            let same = forms.iter_mut().find(|(known, it)| *known == name && it.is_some() == brackets.is_some());
            match (same, brackets) {
                (Some((_, Some(known))), Some(brackets)) => known.join(brackets),
                (Some(_), _) => {}
                (None, brackets) => forms.push((name, brackets)),
            }
        }
        let written = forms.into_iter().map(|(name, brackets)| match brackets {
            None => name.to_owned(),
            Some(brackets) => format!("{name}({brackets})"),
        });
        written.collect::<Vec<_>>().join(", ")
    }
}

/// What may stand in the brackets of the faults of a name.
struct Brackets {
    /// Words of which one is chosen.
    words: Vec<&'static str>,
    /// What stands there besides, or instead: `s` for seconds, for instance.
    number: &'static str,
}

impl Brackets {
    fn of<F>(parameter: &Parameter<F>) -> Option<Self> {
        let (words, number) = match parameter {
            Parameter::None => return None,
            Parameter::Word(word) => (vec![*word], ""),
            Parameter::Open { form, .. } => (vec![*form], ""),
            Parameter::Count { .. } => (Vec::new(), "n"),
            Parameter::Millis { .. } => (Vec::new(), "ms"),
            Parameter::Seconds { .. } => (Vec::new(), "s"),
            Parameter::Signed { .. } => (Vec::new(), "±s"),
            Parameter::WordAndSigned { word, .. } => (vec![*word], "±s"),
        };
        Some(Self { words, number })
    }

    /// Has the words of another fault of that name, too.
    fn join(&mut self, other: Self) {
        for word in other.words {
            if !self.words.contains(&word) {
                self.words.push(word);
            }
        }
    }
}

impl fmt::Display for Brackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = if self.words.is_empty() || self.number.is_empty() { "" } else { "," };
        write!(f, "{}{comma}{}", self.words.join("|"), self.number)
    }
}

impl<V: Vocabulary> fmt::Display for Fault<V> {
    /// The fault as a plan writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn write<F: Vocabulary>(fault: F, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let row = fault.row();
            match row.parameter {
                Parameter::None => f.write_str(row.word),
                parameter => write!(f, "{}({parameter})", row.word),
            }
        }
        of_family!(*self, it => write(it, f))
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
