//! Commands of the guide that are not played, each with its reason.

use std::collections::BTreeSet;

use super::page::Step;

/// A pattern of commands that are not played.
#[derive(Clone, Copy, Debug)]
enum Known {
    Begins(&'static str),
    Has(&'static str),
}

use Known::{Begins, Has};

impl Known {
    fn is(self, text: &str) -> bool {
        match self {
            Self::Begins(begin) => text.starts_with(begin),
            Self::Has(part) => text.contains(part),
        }
    }
}

const OF_CI: &str = ".ci/run plays it";
const RECIPE: &str = "a recipe, which compiles, and runs for minutes";
const COMPILES: &str = "compiles for minutes";
const FUZZES: &str = "fuzzes for minutes";
const EXPLORES: &str = "explores for minutes; proof/tests/explore.rs plays it";
const MODEL: &str = "explores for minutes; sim/tests plays it with less";
const NO_CONTAINER: &str = "no container runs in the simulator";
const NO_PROXY: &str = "no pod answers behind a Service of the simulator";

/// Patterns and reasons; the first matching row counts.
const LEFT_OUT: [(Known, &str); 23] = [
    (Begins("just "), RECIPE),
    (Begins("cargo "), COMPILES),
    (Begins("e2e/promtool/build"), COMPILES),
    (Begins("stowage-proof mutants forbidden-is-absent"), COMPILES),
    (Begins("stowage-proof mutants -o markdown"), COMPILES),
    (Begins("stowage-proof mutants --record"), COMPILES),
    (Begins("STOWAGE_MINIO_IMAGE="), "needs a Docker engine"),
    (Begins("fuzz/run"), FUZZES),
    (Begins("STOWAGE_FUZZ_TARGET="), FUZZES),
    (Begins("target/debug/stowage-e2e run"), OF_CI),
    (Begins("stowage-e2e kubectl"), OF_CI),
    (Begins("stowage-proof explore --profile"), EXPLORES),
    (Begins("stowage-proof explore rotate adopt"), EXPLORES),
    (Begins("diff <(stowage-proof explore"), EXPLORES),
    (Begins("stowage-proof merge"), EXPLORES),
    (Begins("stowage-proof model"), MODEL),
    (Begins("stowage-proof conformance"), "needs a real server"),
    (Begins("aws "), "not on every machine; `stowage-bench clients` plays it"),
    (Begins("export KUBECONFIG"), "what `up` prints; all commands have it here"),
    (Has("kind: ServiceBinding"), "needs a runtime of Service Binding"),
    (Has("kubectl logs"), NO_CONTAINER),
    (Begins("kubectl exec"), NO_CONTAINER),
    (Has("/proxy/metrics"), NO_PROXY),
];

/// Returns the index of the first row that matches a step.
fn row(step: &Step) -> Option<usize> {
    LEFT_OUT.iter().position(|(known, _)| known.is(step.text()))
}

/// Returns the reason for which a step is not played; `None` if it is played.
pub(super) fn reason(step: &Step) -> Option<&'static str> {
    row(step).map(|row| LEFT_OUT[row].1)
}

/// Returns the rows that match none of these steps.
pub(super) fn unused<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<String> {
    let used: BTreeSet<usize> = steps.filter_map(row).collect();
    let unused = LEFT_OUT.iter().enumerate().filter(|(at, _)| !used.contains(at));
    unused.map(|(_, (known, _))| format!("no command is {known:?}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_left_out_for_the_reason_of_the_first_row_that_knows_it() {
        let step = |text: &str| Step::Command(text.to_owned());
        assert_eq!(reason(&step("cargo build")), Some(COMPILES));
        assert_eq!(reason(&step("kubectl get --raw /x/proxy/metrics | grep y")), Some(NO_PROXY));
        assert_eq!(
            reason(&Step::Manifest("a: b\nkind: ServiceBinding\n".to_owned())),
            Some("needs a runtime of Service Binding")
        );
        assert_eq!(reason(&step("kubectl get pods")), None);
    }

    #[test]
    fn a_row_that_knows_nothing_any_more_is_told() {
        let unused = unused([Step::Command("just demo".to_owned())].iter());
        assert_eq!(unused.len(), LEFT_OUT.len() - 1);
        assert!(unused.contains(&"no command is Begins(\"cargo \")".to_owned()), "{unused:?}");
    }
}
