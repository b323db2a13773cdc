//! How fast the answers of a pass come, and what that makes of what was known before.

use std::time::Duration;

use tokio::time::Instant;

/// A step that takes so long makes what was read before it old: users and other operators have gone on meanwhile.
const STANDSTILL: Duration = Duration::from_secs(10);

/// In so much time another operator makes, publishes and replaces a key.
const HESITATION: Duration = Duration::from_secs(1);

/// So many late answers make a pass ask again for what it knew; so many slow ones, for the keys.
const MOST_LATE: u32 = 5;

/// When the answers of a pass came.
pub(super) struct Answers {
    last: Instant,
    late: u32,
    slow: u32,
}

/// How an answer came.
#[derive(Debug, PartialEq)]
pub(super) enum Came {
    /// What was known before still counts.
    Soon,
    /// But for the keys, which another operator may have been at.
    Slowly,
    /// What was known before is to be asked for again.
    Late,
}

impl Answers {
    /// Of a pass that begins now.
    pub(super) fn begin() -> Self {
        Self { last: Instant::now(), late: 0, slow: 0 }
    }

    /// Takes in that an answer came now. Where everything is slow, slow and late answers have to do in the end.
    pub(super) fn came(&mut self) -> Came {
        let took = self.last.elapsed();
        self.last = Instant::now();
        let (count, came) = if took >= STANDSTILL {
            (&mut self.late, Came::Late)
        } else if took >= HESITATION {
            (&mut self.slow, Came::Slowly)
        } else {
            return Came::Soon;
        };
        *count += 1;
        if *count <= MOST_LATE { came } else { Came::Soon }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_answers_make_a_pass_ask_again_but_not_for_ever() {
        let mut answers = Answers::begin();
        assert_eq!(answers.came(), Came::Soon);
        for (took, came) in [(HESITATION, Came::Slowly), (STANDSTILL, Came::Late)] {
            let mut after = || {
                answers.last = Instant::now().checked_sub(took).expect("the clock is past that");
                answers.came()
            };
            assert!((0..MOST_LATE).all(|_| after() == came));
            assert_eq!(after(), Came::Soon);
        }
    }
}
