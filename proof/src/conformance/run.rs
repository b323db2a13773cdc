//! Playing sequences on both sides, and reducing differences.

use std::fmt::Display;
use std::time::{Duration, Instant};

use super::difference::{AnswerPair, Difference, Exchange, leaves};
use super::rule::{Consequence, System};
use super::rules;

/// Maximum number of differences that are reported. All of them are counted.
const TOLD: usize = 200;
/// Number of reported differences that are reduced, because that takes a while.
const SHRUNK: usize = 10;

/// A simulated server and a real one.
pub trait Pair {
    /// Operation that both sides get.
    type Operation: Clone + Display;

    /// Returns the system of the real server, which selects the rules.
    fn system(&self) -> System;

    /// Returns the sequence with this number. This is a pure function.
    fn sequence(seed: u64, number: u64) -> Vec<Self::Operation>;

    /// Prepares both sides for a sequence, under a name that was not used before.
    ///
    /// # Errors
    /// Returns an error if a side does not answer.
    fn open(&mut self, place: &str) -> impl Future<Output = Result<(), String>>;

    /// Performs one operation on both sides.
    ///
    /// # Errors
    /// Returns an error if a side does not answer at all.
    fn step(&mut self, operation: &Self::Operation) -> impl Future<Output = Result<AnswerPair, String>>;

    /// Deletes everything that the sequence created.
    ///
    /// # Errors
    /// Returns an error if a side does not answer.
    fn close(&mut self) -> impl Future<Output = Result<(), String>>;

    /// Deletes everything that is left after the last sequence.
    ///
    /// # Errors
    /// Returns an error if a side does not answer.
    fn finish(&mut self) -> impl Future<Output = Result<(), String>>;
}

/// First sequence to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Start with this sequence and continue.
    From(u64),
    /// Play only this sequence.
    Only(u64),
}

/// Extent of a comparison.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Seed of every random choice.
    pub seed: u64,
    /// Minimum number of operations; the last sequence is finished.
    pub operations: u64,
    /// Time after which no sequence is started.
    pub time: Option<Duration>,
    /// True to reduce differences.
    pub shrink: bool,
    /// Sequences to play.
    pub start: Start,
    /// Prefix of every name that is created, so that two runs on one server don't collide.
    pub prefix: String,
    /// Command that plays a sequence again, without its `--seed` and `--sequence`.
    pub command: String,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct ConformanceReport {
    /// Operations answered by both sides.
    pub operations: u64,
    /// Sequences played.
    pub sequences: u64,
    /// Operations with differences that rules explain.
    pub explained: u64,
    /// Number of operations that each rule explained, in the order of the table.
    pub by_rule: Vec<(&'static str, u64)>,
    /// Number of sequences with a difference that no rule explains.
    pub unexplained: u64,
    /// The first of these differences, reduced.
    pub differences: Vec<Difference>,
}

/// A sequence, played until its end, its first unexplained difference, or a difference after which
/// the sides have different states.
struct Played<O> {
    answered: u64,
    /// Names of the rules that explained the answers, for each operation with explained
    /// differences.
    explained: Vec<Vec<&'static str>>,
    otherwise: Option<(Vec<O>, O, Difference)>,
}

/// Compares until a limit is reached. Calls `told` after each sequence.
///
/// # Errors
/// Returns an error if a side does not answer, because the comparison has no result then.
pub async fn run<P: Pair>(
    pair: &mut P,
    limits: &Limits,
    mut told: impl FnMut(&ConformanceReport),
) -> Result<ConformanceReport, String> {
    let began = Instant::now();
    let mut report = ConformanceReport::default();
    let mut number = match limits.start {
        Start::From(number) | Start::Only(number) => number,
    };
    loop {
        let operations = P::sequence(limits.seed, number);
        let played = play(pair, limits, number, 0, &operations).await?;
        report.operations += played.answered;
        report.sequences += 1;
        report.count(&played.explained);
        if let Some(otherwise) = played.otherwise {
            report.unexplained += 1;
            let in_time = limits.time.is_none_or(|limit| began.elapsed() < limit);
            let difference = match report.differences.len() {
                shrunk if limits.shrink && in_time && shrunk < SHRUNK => {
                    shrink(pair, limits, number, otherwise).await?
                }
                _ => otherwise.2,
            };
            report.differences.extend(Some(difference).filter(|_| report.differences.len() < TOLD));
        }
        told(&report);
        number += 1;
        let late = limits.time.is_some_and(|limit| began.elapsed() >= limit);
        if late || report.operations >= limits.operations || matches!(limits.start, Start::Only(_)) {
            pair.finish().await?;
            return Ok(report);
        }
    }
}

impl ConformanceReport {
    /// Counts operations that rules explained. Several rules may explain the same operation.
    fn count(&mut self, explained: &[Vec<&'static str>]) {
        for name in explained.iter().flatten() {
            match self.by_rule.iter_mut().find(|(known, _)| known == name) {
                Some((_, times)) => *times += 1,
                None => self.by_rule.push((name, 1)),
            }
        }
        self.explained += explained.len() as u64;
    }
}

/// Plays operations under a fresh name.
async fn play<P: Pair>(
    pair: &mut P,
    limits: &Limits,
    number: u64,
    attempt: usize,
    operations: &[P::Operation],
) -> Result<Played<P::Operation>, String> {
    pair.open(&format!("{}-{number}-{attempt}", limits.prefix)).await?;
    let mut played = Played { answered: 0, explained: Vec::new(), otherwise: None };
    for (index, operation) in operations.iter().enumerate() {
        let answers = pair.step(operation).await.map_err(|why| format!("sequence {number}, {operation}: {why}"))?;
        played.answered += 1;
        let found = leaves(&answers.simulated, &answers.real);
        if found.is_empty() {
            continue;
        }
        let after = operations[..index].iter().map(ToString::to_string).collect();
        let exchange = Exchange { operation: operation.to_string(), after, answers };
        let sorted = rules::sort(pair.system(), &exchange, found);
        if sorted.rest.is_empty() {
            played.explained.extend(Some(sorted.explained).filter(|names| !names.is_empty()));
            match sorted.then {
                Consequence::GoesOn => continue,
                Consequence::Ends => break,
            }
        }
        let difference = Difference {
            sequence: number,
            operation: exchange.operation,
            after: exchange.after,
            leaves: sorted.rest,
            replay: format!("{} --seed {} --sequence {number}", limits.command, limits.seed),
        };
        played.otherwise = Some((operations[..index].to_vec(), operation.clone(), difference));
        break;
    }
    pair.close().await?;
    Ok(played)
}

/// Leaves out operations that are not needed to show a difference: first halves, then quarters, at
/// last single operations.
async fn shrink<P: Pair>(
    pair: &mut P,
    limits: &Limits,
    number: u64,
    (mut before, last, mut smallest): (Vec<P::Operation>, P::Operation, Difference),
) -> Result<Difference, String> {
    let paths =
        |difference: &Difference| -> Vec<String> { difference.leaves.iter().map(|leaf| leaf.path.clone()).collect() };
    let mut attempt = 0;
    let mut size = before.len().div_ceil(2);
    while size > 0 {
        let mut end = before.len();
        while end > 0 {
            attempt += 1;
            let start = end.saturating_sub(size);
            let without: Vec<_> = before[..start].iter().chain(&before[end..]).cloned().collect();
            let whole: Vec<_> = without.iter().chain([&last]).cloned().collect();
            let played = play(pair, limits, number, attempt, &whole).await?;
            // Only the same difference counts, not another one.
            let same = |found: &Difference| paths(found) == paths(&smallest) && found.after.len() == without.len();
            if let Some((_, _, found)) = played.otherwise.filter(|(_, _, found)| same(found)) {
                (before, smallest) = (without, found);
            }
            end = start;
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    Ok(smallest)
}
