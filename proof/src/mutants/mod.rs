//! Seeded bugs, and whether the exploration finds them (spec §5, `stowage-proof mutants`).
//!
//! Each mutant is a patch in `proof/mutants/`: a header that says what is wrong and where such a
//! thing was seen, and a unified diff of the operator's sources. One at a time is applied to a
//! scratch copy of the workspace, built there, and explored by its own `stowage-proof explore`:
//! first in the scenarios that its header names, then in all. The line that kills it is replayed by
//! the unmutated build, which must keep every promise under it. A mutant that survives is a missing
//! oracle or scenario. What no schedule shows, as memory and the number of requests, a test finds
//! that the header names: it must fail over the mutant, and pass without.

mod catalogue;
mod explore;
mod named_test;
mod patch;
mod process;
mod report;
mod run;
mod scratch;

pub use catalogue::{FOLDER, Finder, Mutant, load};
pub use explore::{Kill, Limits};
pub use named_test::NamedTest;
pub use report::{catalogue, document, markdown, text, trouble};
pub use run::{MutantOutcome, MutationReport, Trial, Verdict};
