//! How faults are written: a name, and what stands in brackets after it.

use std::fmt;

use super::fault::{Actor, Applied, CrashPoint, Edit, Fault, Feature, HeadStatus, Rival, Tampering};
use super::s3_call::S3Operation;

/// Why a word is no fault.
pub(super) enum Misspelt {
    /// There is no fault of that name.
    Name,
    /// There is, but not with this in its brackets.
    Parameter,
    /// There is, but not with so long a time in its brackets.
    TooLong,
}

/// The longest time that may stand in a fault's brackets, in seconds: in a longer one the operator's own probes alone are more
/// calls than a run may have.
pub(super) const LONGEST: u32 = 86_400;

/// What stands in a fault's brackets.
enum Parameter {
    None,
    Word(&'static str),
    Number(u64),
    /// With its sign, also where it is positive.
    Signed(i32),
    /// Whose clock, and how far it is off.
    Off(Actor, i32),
}

impl Fault {
    /// Its name, without what may stand in brackets.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Its name where faults are counted, which no other has: that a name is taken is called the same of Secrets and of buckets.
    pub fn kind(self) -> &'static str {
        match self {
            Self::BucketExists => "bucket-exists",
            other => other.name(),
        }
    }

    /// Name and parameter.
    fn words(self) -> (&'static str, Parameter) {
        use Parameter::{None, Number, Off, Signed, Word};
        match self {
            Self::LostRequest => ("lost-request", None),
            Self::LostAnswer => ("lost-answer", None),
            Self::Hang => ("hang", None),
            Self::Slow { millis } => ("slow", Number(millis)),
            Self::Crash(point) => ("crash", Word(point.word())),
            Self::Pause { seconds } => ("pause", Number(seconds.into())),
            Self::Twin => ("twin", None),
            Self::Step { seconds } => ("step", Signed(seconds)),
            Self::Skew { actor, seconds } => ("skew", Off(actor, seconds)),
            Self::Lag { seconds } => ("lag", Number(seconds.into())),
            Self::Conflict => ("conflict", None),
            Self::AlreadyExists(rival) => ("already-exists", Word(rival.word())),
            Self::ServerError(applied) => ("server-error", Word(applied.word())),
            Self::Throttle { seconds } => ("throttle", Number(seconds.into())),
            Self::Forbidden => ("forbidden", None),
            Self::Denied => ("denied", None),
            Self::WebhookTimeout => ("webhook-timeout", None),
            Self::QuotaExceeded => ("quota-exceeded", None),
            Self::NamespaceTerminating => ("namespace-terminating", None),
            Self::Stale { changes } => ("stale", Number(changes.into())),
            Self::Rewind => ("rewind", None),
            Self::Collapse => ("collapse", None),
            Self::WatchCut => ("watch-cut", None),
            Self::WatchGone => ("watch-gone", None),
            Self::WatchSilent => ("watch-silent", None),
            Self::WatchDuplicate => ("watch-duplicate", None),
            Self::ExpiredContinue => ("expired-continue", None),
            Self::Shuffle => ("shuffle", None),
            Self::GcLate => ("gc-late", None),
            Self::Recreate => ("recreate", None),
            Self::Tamper(what) => ("tamper", Word(what.word())),
            Self::Edit(what) => ("edit", Word(what.word())),
            Self::Unreachable => ("unreachable", None),
            Self::InternalError => ("internal-error", None),
            Self::SlowDown => ("slow-down", None),
            Self::AccessDenied => ("access-denied", None),
            Self::Head(status) => ("head", Word(status.word())),
            Self::VerbDown(operation) => ("verb-down", Word(operation.name())),
            Self::AlreadyOwned => ("already-owned", None),
            Self::BucketExists => ("already-exists", None),
            Self::OkOnExisting => ("ok-on-existing", None),
            Self::PartialDelete => ("partial-delete", None),
            Self::Locked => ("locked", None),
            Self::LateWrite => ("late-write", None),
            Self::Vanish => ("vanish", None),
            Self::Usurp { empty: false } => ("usurp", None),
            Self::Usurp { empty: true } => ("usurp", Word("empty")),
            Self::CredentialsRevoked => ("credentials-revoked", None),
            Self::ClockSkew => ("clock-skew", None),
            Self::StaleRead => ("stale-read", None),
            Self::ErrorIn200 => ("error-in-200", None),
            Self::Truncated => ("truncated", None),
            Self::NotImplemented(feature) => ("not-implemented", Word(feature.word())),
        }
    }

    /// Reads a fault as a plan writes it; the brackets are told apart from the name already.
    pub(super) fn read(name: &str, parameter: Option<&str>) -> Result<Self, Misspelt> {
        let known: Vec<Self> = Self::all_single().into_iter().filter(|fault| fault.words().0 == name).collect();
        let Some(first) = known.first() else { return Err(Misspelt::Name) };
        let found = match (first, parameter) {
            (Self::Slow { .. }, Some(number)) => number.parse().ok().map(|millis| Self::Slow { millis }),
            (Self::Pause { .. }, Some(number)) => number.parse().ok().map(|seconds| Self::Pause { seconds }),
            (Self::Lag { .. }, Some(number)) => number.parse().ok().map(|seconds| Self::Lag { seconds }),
            (Self::Step { .. }, Some(number)) => number.parse().ok().map(|seconds| Self::Step { seconds }),
            (Self::Skew { .. }, Some(off)) => skew(off),
            (Self::Throttle { .. }, Some(number)) => number.parse().ok().map(|seconds| Self::Throttle { seconds }),
            (Self::Stale { .. }, Some(number)) => number.parse().ok().map(|changes| Self::Stale { changes }),
            (Self::VerbDown(_), Some(operation)) => S3Operation::named(operation).map(Self::VerbDown),
            (_, Some(word)) => {
                known.iter().copied().find(|fault| matches!(fault.words().1, Parameter::Word(known) if known == word))
            }
            (_, None) => known.iter().copied().find(|fault| matches!(fault.words().1, Parameter::None)),
        };
        if found.is_some_and(|fault| fault.seconds() > LONGEST.into()) {
            return Err(Misspelt::TooLong);
        }
        let takes_none = known.iter().all(|fault| matches!(fault.words().1, Parameter::None));
        found.ok_or(if takes_none { Misspelt::Name } else { Misspelt::Parameter })
    }

    /// The time in its brackets, forward or back; 0 where there is none.
    fn seconds(self) -> u64 {
        match self {
            Self::Slow { millis } => millis.div_ceil(1000),
            Self::Pause { seconds } | Self::Lag { seconds } | Self::Throttle { seconds } => seconds.into(),
            Self::Step { seconds } | Self::Skew { seconds, .. } => seconds.unsigned_abs().into(),
            _ => 0,
        }
    }

    /// What may stand in the brackets, such as `before|after-effect`; empty for a fault without.
    fn choices(self) -> String {
        fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> String {
            all.iter().map(|one| word(*one)).collect::<Vec<_>>().join("|")
        }
        match self {
            Self::Slow { .. } => "ms".to_owned(),
            Self::Step { .. } => "±s".to_owned(),
            Self::Skew { .. } => format!("{},±s", words(&Actor::ALL, Actor::word)),
            Self::Throttle { .. } | Self::Pause { .. } | Self::Lag { .. } => "s".to_owned(),
            Self::Stale { .. } => "n".to_owned(),
            Self::VerbDown(_) => "operation".to_owned(),
            Self::Crash(_) => words(&CrashPoint::ALL, CrashPoint::word),
            Self::AlreadyExists(_) => words(&Rival::ALL, Rival::word),
            Self::ServerError(_) => words(&Applied::ALL, Applied::word),
            Self::Head(_) => words(&HeadStatus::ALL, HeadStatus::word),
            Self::Tamper(_) => words(&Tampering::ALL, Tampering::word),
            Self::Edit(_) => words(&Edit::ALL, Edit::word),
            Self::NotImplemented(_) => words(&Feature::ALL, Feature::word),
            Self::Usurp { empty: true } => "empty".to_owned(),
            _ => String::new(),
        }
    }

    /// The forms of a name, or all there are: `crash(before|after-effect|after-answer), conflict`.
    pub(super) fn forms(of: Option<&str>) -> String {
        let mut forms: Vec<String> = Vec::new();
        for fault in Self::all_single() {
            let name = fault.words().0;
            let form = match fault.choices() {
                none if none.is_empty() => name.to_owned(),
                choices => format!("{name}({choices})"),
            };
            if of.is_none_or(|of| of == name) && !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms.join(", ")
    }
}

/// `gateway,-45`.
fn skew(off: &str) -> Option<Fault> {
    let (actor, seconds) = off.split_once(',')?;
    let actor = Actor::ALL.into_iter().find(|known| known.word() == actor)?;
    Some(Fault::Skew { actor, seconds: seconds.parse().ok()? })
}

impl fmt::Display for Fault {
    /// The fault as a plan writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            (name, Parameter::None) => f.write_str(name),
            (name, Parameter::Word(word)) => write!(f, "{name}({word})"),
            (name, Parameter::Number(number)) => write!(f, "{name}({number})"),
            (name, Parameter::Signed(number)) => write!(f, "{name}({number:+})"),
            (name, Parameter::Off(actor, number)) => write!(f, "{name}({},{number:+})", actor.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_every_fault_with_what_may_stand_in_its_brackets() {
        let guide = include_str!("../../../docs/explorer.md");
        let forms = Fault::forms(None);
        // In a table, `|` is written with a backslash.
        let shown = |form: &&str| guide.contains(&format!("`{}`", form.replace('|', r"\|")));
        let missing: Vec<&str> = forms.split(", ").filter(|form| !shown(form)).collect();
        assert!(missing.is_empty(), "docs/explorer.md does not have {}", missing.join(", "));
    }
}
