//! Mutation testing of the exploration with seeded bugs (spec §5, `stowage-proof mutants`).
//!
//! Each mutant is a patch in `proof/mutants/`: a header that describes the bug and names its
//! origin, and a unified diff of the operator's sources. One mutant at a time is applied to a
//! scratch copy of the workspace, built there, and explored with its own `stowage-proof explore`:
//! first in the scenarios that its header names, then in all. The line that kills it is replayed
//! with the unmutated build, which must keep every promise. A mutant that survives means that an
//! oracle or a scenario is missing. Bugs that no schedule can show, such as memory or the number of
//! requests, are found by a test that the header names: it must fail with the mutant and pass
//! without.

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
