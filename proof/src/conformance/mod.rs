//! Conformance of the simulators: the same random operations go to a simulated server and to a real
//! one, and each pair of answers is compared.
//!
//! Operations are plain data, generated from a seed ([`kubernetes::sequence`], [`s3::sequence`])
//! before anything is sent. A few dozen of them make a sequence, which has its own namespace or
//! buckets. Both sides get them through the same client, one after the other. Values that must
//! differ (UIDs, versions, times) are replaced in both answers by a number in the order of
//! appearance. Then whole answers are compared, [leaf](Leaf) by leaf. Justified differences are
//! rows of [`rules`]; `docs/reference/fidelity.md` is generated from them. Any other difference is
//! a [`Difference`]. It is played again with fewer operations before it, until none can be left
//! out.

mod canonical;
mod difference;
pub mod kubernetes;
pub mod rule;
pub mod rules;
mod run;
pub mod s3;

pub use difference::{AnswerPair, Difference, Exchange, Leaf, leaves};
pub use run::{ConformanceReport, Limits, Pair, Start, run};
