//! The [`Fault`] type: a fault of any family, including one that a project defines.

use std::fmt;

use crate::answer::Answered;
use crate::call::{Call, CallKind};
use crate::families::{CallFault, ClockFault, KubeFault, ProcessFault, S3Fault};
use crate::row::{Application, Lasts, Nobody, Parameter, Vocabulary};

/// Maximum of a parameter that is a time, in seconds: a day. A controller's own probes would make
/// more calls in a longer time than a run may have.
pub(crate) const LONGEST: u32 = 86_400;

/// A fault. `V` is the family that the project under test defines for its users and third parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<V = Nobody> {
    /// A fault of any call.
    Call(CallFault),
    /// A fault of the process that makes the call.
    Process(ProcessFault),
    /// A fault of that process's wall clock.
    Clock(ClockFault),
    /// A fault of a call to the Kubernetes API.
    Kube(KubeFault),
    /// A fault of a call to a store.
    S3(S3Fault),
    /// A fault of the family that the project defines.
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

/// Evaluates the same expression for a fault of any family.
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

/// The reason why a text is not a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misspelt {
    /// No fault of any family has that name.
    Name,
    /// The fault does not have this parameter.
    Parameter,
    /// The parameter is a time longer than [`LONGEST`].
    TooLong,
}

impl<V: Vocabulary> Fault<V> {
    /// Returns every fault that a matrix of single faults tries. A fault with a parameter is
    /// included once for each of its words, or for each number that makes a difference.
    pub fn all_single() -> Vec<Self> {
        let call = CallFault::all().into_iter().map(Self::Call);
        let process = ProcessFault::all().into_iter().map(Self::Process);
        let clock = ClockFault::all().into_iter().map(Self::Clock);
        let kube = KubeFault::all().into_iter().map(Self::Kube);
        let s3 = S3Fault::all().into_iter().map(Self::S3);
        let project = V::all().into_iter().map(Self::Project);
        call.chain(process).chain(clock).chain(kube).chain(project).chain(s3).collect()
    }

    /// Returns the name of the fault without the brackets.
    pub fn name(self) -> &'static str {
        of_family!(self, it => it.row().word)
    }

    /// Returns the unique name of the fault for counting. Two families have a fault with the same
    /// name in plans: a name that is taken, of an object and of a bucket.
    pub fn kind(self) -> &'static str {
        of_family!(self, it => it.row().kind)
    }

    /// Checks that a plan may have the fault at a call of this kind.
    ///
    /// # Errors
    ///
    /// Returns the description of the calls that a plan may have it at.
    pub fn check(self, kind: CallKind) -> Result<(), &'static str> {
        let calls = of_family!(self, it => it.row().calls);
        if calls.contain(kind) { Ok(()) } else { Err(calls.words()) }
    }

    /// Returns true if the fault changes this call itself, rather than later ones alone. For
    /// example, the failure of an S3 operation can begin at any S3 call, but only calls of that
    /// operation fail.
    pub fn concerns(self, call: &Call) -> bool {
        of_family!(self, it => it.row().meets).contain(call.kind())
    }

    /// Returns the duration of the fault.
    pub fn lasts(self) -> Lasts {
        of_family!(self, it => it.row().lasts)
    }

    /// Returns true if the fault applies to the whole run, regardless of its effect pattern.
    pub fn is_of_run(self) -> bool {
        self.lasts() == Lasts::WholeRun
    }

    /// Returns true if the fault can continue or leave something behind after its call is answered:
    /// a clock that is off, a watch that hides something, a feature or operation that the store
    /// lacks, an object that cannot be deleted.
    pub fn outlasts_its_call(self) -> bool {
        self.lasts() != Lasts::ItsCall
    }

    /// Returns the way in which the fault is applied.
    pub fn applied(self) -> Application {
        of_family!(self, it => it.row().applied)
    }

    /// Returns the server's answer, or `None` if the fault does not replace the answer to this
    /// call.
    pub(crate) fn answer(self, call: &Call) -> Option<Answered> {
        of_family!(self, it => it.answer(call))
    }

    /// Parses a fault from its name and its parameter in a plan.
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

    /// Returns the fault with another parameter, or `None` if the parameter is not valid for it.
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

    /// Returns the possible parameters of this fault, or `None` if it has none.
    fn brackets(self) -> Option<Brackets> {
        of_family!(self, it => Brackets::of(&it.row().parameter))
    }

    /// Returns the syntax of all faults with this name, or of all faults, for error messages and
    /// help: `crash(before|after-effect|after-answer), conflict`.
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

/// Syntax of the parameter of all faults that share a name.
struct Brackets {
    /// Alternatives of a closed set of words.
    words: Vec<&'static str>,
    /// Placeholder for a number, such as `s` for seconds. Empty if the parameter has none.
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

    /// Adds the words of another fault with the same name.
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
    /// Formats the fault as written in a plan.
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
