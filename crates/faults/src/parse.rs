//! Parser of a plan's text form.

use std::num::NonZeroU64;
use std::str::FromStr;

use super::call::{CallKind, KubeVerb, S3Operation};
use super::fault::{Fault, Misspelt};
use super::plan::{CallPattern, EffectPattern, Entry, Plan, PlanError};
use super::row::Vocabulary;

const EFFECT_FORMS: &str = "an effect is #N, kube:<verb> <resource>[/<subresource>][@k] or s3:<Operation>[@k]";
const OCCURRENCE_FORM: &str = "after @ stands a whole number from 1";

/// A word of the text, with its start in bytes.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
}

/// The text being parsed, to convert byte offsets to columns.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn error(&self, at: usize, problem: impl Into<String>, allowed: impl Into<String>) -> PlanError {
        PlanError { column: self.0[..at].chars().count() + 1, problem: problem.into(), allowed: allowed.into() }
    }

    fn unknown(&self, word: Word<'_>, what: &str, allowed: impl Into<String>) -> PlanError {
        self.error(word.start, format!("{what} `{}`", word.text), allowed)
    }
}

impl<V: Vocabulary> FromStr for Plan<V> {
    type Err = PlanError;

    /// Parses the text form. Empty text is the empty plan. Repeated spaces and a trailing `;` are
    /// allowed.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        plan(text)
    }
}

/// Parses a whole plan.
fn plan<V: Vocabulary>(text: &str) -> Result<Plan<V>, PlanError> {
    let source = Source(text);
    let mut entries = Vec::new();
    let mut start = 0;
    for part in text.split(';') {
        let words = words_of(part, start);
        start += part.len() + 1;
        if !words.is_empty() {
            entries.push(entry(&source, &words, start - 1)?);
        }
    }
    Ok(Plan { entries })
}

fn words_of(part: &str, offset: usize) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = part;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return words;
        }
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        words.push(Word { text: &rest[..length], start: offset + part.len() - rest.len() });
        rest = &rest[length..];
    }
}

fn entry<V: Vocabulary>(source: &Source<'_>, words: &[Word<'_>], end: usize) -> Result<Entry<V>, PlanError> {
    let missing = |what: &str, allowed: &str| source.error(end, format!("{what} is missing"), allowed);
    let first = words[0];
    let (effect, rest) = if first.text.starts_with("kube:") {
        let resource = words.get(1).ok_or_else(|| missing("the resource", EFFECT_FORMS))?;
        (kube_pattern(source, first, *resource)?, &words[2..])
    } else {
        (one_word_pattern(source, first)?, &words[1..])
    };
    match rest {
        [] => Err(missing("the fault", &fault_names::<V>())),
        [word] => {
            let fault = fault(source, *word)?;
            fits(source, *word, &effect, fault)?;
            Ok(Entry { effect, fault })
        }
        [_, extra, ..] => Err(source.unknown(
            *extra,
            "unexpected",
            "an entry is one effect and one fault; entries are separated by `;`",
        )),
    }
}

fn fits<V: Vocabulary>(
    source: &Source<'_>,
    word: Word<'_>,
    effect: &EffectPattern,
    fault: Fault<V>,
) -> Result<(), PlanError> {
    let EffectPattern::Call { call, .. } = effect else {
        return Ok(());
    };
    fault.check(call.kind()).map_err(|needs| {
        let problem = match call.kind() {
            CallKind::Kube(verb) => format!("`{fault}` can't happen to a Kubernetes {verb}"),
            CallKind::S3(operation) => format!("`{fault}` can't happen to S3's {operation}"),
        };
        source.error(word.start, problem, format!("it is for {needs}"))
    })
}

fn one_word_pattern(source: &Source<'_>, word: Word<'_>) -> Result<EffectPattern, PlanError> {
    if let Some(number) = word.text.strip_prefix('#') {
        return number
            .parse()
            .map(EffectPattern::Number)
            .map_err(|_| source.unknown(word, "bad effect number", "effects count from #1"));
    }
    let Some(name) = word.text.strip_prefix("s3:") else {
        return Err(source.unknown(word, "unknown effect", EFFECT_FORMS));
    };
    let (name, occurrence) = occurrence(source, word, name)?;
    let operation = S3Operation::named(name)
        .ok_or_else(|| source.unknown(word, "unknown S3 operation in", operations_like(name)))?;
    Ok(EffectPattern::Call { call: CallPattern::S3(operation), occurrence })
}

fn operations_like(name: &str) -> String {
    let wanted = name.to_ascii_lowercase();
    let near: Vec<&str> = S3Operation::all()
        .map(S3Operation::name)
        .filter(|known| {
            let known = known.to_ascii_lowercase();
            known == wanted || (wanted.len() >= 4 && known.contains(&wanted))
        })
        .collect();
    if near.is_empty() {
        "operations are named as in the AWS S3 API, such as CreateBucket".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    }
}

fn kube_pattern(source: &Source<'_>, verb_word: Word<'_>, resource_word: Word<'_>) -> Result<EffectPattern, PlanError> {
    let name = &verb_word.text["kube:".len()..];
    let verb = KubeVerb::ALL.into_iter().find(|verb| verb.name() == name).ok_or_else(|| {
        let names = KubeVerb::ALL.map(KubeVerb::name).join(", ");
        source.unknown(verb_word, "unknown Kubernetes verb in", format!("verbs are {names}"))
    })?;
    let (path, occurrence) = occurrence(source, resource_word, resource_word.text)?;
    let (resource, subresource) = match path.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (path, None),
    };
    if !is_resource_name(resource) || !subresource.is_none_or(is_resource_name) {
        return Err(source.unknown(
            resource_word,
            "bad resource",
            "a resource is named by its plural in lower case, such as secrets or bucketclaims/status",
        ));
    }
    Ok(EffectPattern::Call {
        call: CallPattern::Kube { verb, resource: resource.to_owned(), subresource: subresource.map(str::to_owned) },
        occurrence,
    })
}

fn is_resource_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Splits `name@k`.
fn occurrence<'a>(
    source: &Source<'_>,
    word: Word<'_>,
    text: &'a str,
) -> Result<(&'a str, Option<NonZeroU64>), PlanError> {
    let Some((name, k)) = text.split_once('@') else {
        return Ok((text, None));
    };
    let k = k.parse().map_err(|_| source.unknown(word, "bad occurrence in", OCCURRENCE_FORM))?;
    Ok((name, Some(k)))
}

fn fault<V: Vocabulary>(source: &Source<'_>, word: Word<'_>) -> Result<Fault<V>, PlanError> {
    let (name, parameter) = match word.text.split_once('(') {
        None => (word.text, None),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(parameter) => (name, Some(parameter)),
            None => return Err(source.unknown(word, "no closing bracket in", fault_names::<V>())),
        },
    };
    Fault::read(name, parameter).map_err(|misspelt| match misspelt {
        Misspelt::Name => source.unknown(word, "unknown fault", fault_names::<V>()),
        Misspelt::TooLong => source.unknown(word, "too long a time in", "it is a day at most"),
        Misspelt::Parameter => {
            source.unknown(word, "bad parameter in", format!("it is {}", Fault::<V>::forms(Some(name))))
        }
    })
}

fn fault_names<V: Vocabulary>() -> String {
    format!("a fault is one of {}", Fault::<V>::forms(None))
}
