//! Is the simulation true? The same random operations on a simulated server and on a real one,
//! answer by answer.
//!
//! Operations are plain data, made from a seed ([`kubernetes::sequence`], [`s3::sequence`]) before
//! anything is sent: a few dozen make a sequence, which has a namespace or buckets of its own. Both
//! sides get them through the same client, one after the other. What must differ (UIDs, versions,
//! times) is replaced in both answers by a number in the order of its appearance, and then they are
//! compared as wholes ([`leaf`](Leaf) by leaf). What differs for a reason is a row of [`rules`];
//! `docs/reference/fidelity.md` is made from those. Anything else is a [`Difference`], which is
//! played again with less before it, until no operation can be left out.

mod canonical;
mod difference;
pub mod kubernetes;
pub mod rule;
pub mod rules;
mod run;
pub mod s3;

pub use difference::{AnswerPair, Difference, Exchange, Leaf, leaves};
pub use run::{ConformanceReport, Limits, Pair, Start, run};
