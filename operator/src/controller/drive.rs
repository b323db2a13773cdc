//! The driver of every reconciliation: of claims, accesses, backends and orphans.

use std::ops::ControlFlow;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::plan::{Arrival, Bound, Reconciliation};

/// Duration of a step after which earlier reads count as stale: users and other operators may have
/// changed objects in the meantime.
const STANDSTILL: Duration = Duration::from_secs(10);

/// Duration of a step in which another operator can create, publish and replace a key.
const HESITATION: Duration = Duration::from_secs(1);

/// Number of late answers that make a pass read again what it knew, and of slow answers that make
/// it read the record again. Further ones count as prompt.
const MOST_LATE: u32 = 5;

/// Carries out the steps of a reconciliation and decides nothing.
pub(crate) trait CarryOut<C: Reconciliation> {
    /// Carries out one step.
    fn carry_out(&mut self, known: &C, step: &C::Step) -> impl Future<Output = C::Answer> + Send;
}

/// Runs a reconciliation step by step until it ends or reaches its limit.
pub(crate) async fn drive<C: Reconciliation>(
    reconciliation: &mut C,
    clock: &Clock,
    hands: &mut impl CarryOut<C>,
) -> C::End {
    let (mut steps, mut reads) = (0, 0);
    let mut answers = Answers::begin();
    loop {
        let step = match reconciliation.next(clock.now()) {
            ControlFlow::Break(end) => return end,
            ControlFlow::Continue(step) => step,
        };
        let bound = C::bound(&step);
        let count = match bound {
            Bound::Steps => &mut steps,
            Bound::ReadsByName => &mut reads,
        };
        if *count >= C::most(bound) {
            tracing::warn!(steps, reads, "goes on another time: this has gone on for long");
            return reconciliation.cut_short(bound);
        }
        *count += 1;
        let answer = hands.carry_out(reconciliation, &step).await;
        reconciliation.learn(answer, answers.came());
    }
}

/// Arrival times of the answers of a reconciliation.
struct Answers {
    last: Instant,
    late: u32,
    slow: u32,
}

impl Answers {
    /// Starts the clock of a reconciliation that begins now.
    fn begin() -> Self {
        Self { last: Instant::now(), late: 0, slow: 0 }
    }

    /// Records that an answer arrived now.
    ///
    /// Past [`MOST_LATE`], late and slow answers count as prompt, so that a pass ends even if
    /// everything is slow.
    fn came(&mut self) -> Arrival {
        let took = self.last.elapsed();
        self.last = Instant::now();
        let (count, arrival) = if took >= STANDSTILL {
            (&mut self.late, Arrival::Late)
        } else if took >= HESITATION {
            (&mut self.slow, Arrival::Slow)
        } else {
            return Arrival::Prompt;
        };
        *count += 1;
        if *count <= MOST_LATE { arrival } else { Arrival::Prompt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_answers_make_a_pass_ask_again_but_not_for_ever() {
        let mut answers = Answers::begin();
        assert_eq!(answers.came(), Arrival::Prompt);
        for (took, came) in [(HESITATION, Arrival::Slow), (STANDSTILL, Arrival::Late)] {
            let mut after = || {
                answers.last = Instant::now().checked_sub(took).expect("the clock is past that");
                answers.came()
            };
            assert!((0..MOST_LATE).all(|_| after() == came));
            assert_eq!(after(), Arrival::Prompt);
        }
    }
}
