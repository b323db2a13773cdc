//! The command line (spec §5).

mod conformance;
mod explore;
mod merge;
mod model;
mod mutants;
mod progress;
mod replay;
mod report;

use clap::{Parser, Subcommand};
use terminal::Failure;

/// Tests that prove the Stowage operator and its simulator: exploration, model, mutants and
/// conformance.
#[derive(Debug, Parser)]
#[command(name = "stowage-proof", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play scenarios under every fault, and check every promise.
    ///
    /// A scenario is a list of user actions on one or a few claims. It is played once undisturbed,
    /// which numbers every call of the production operator, and then again with a fault at each
    /// call to which that fault applies. All of it happens in this process, in simulated time, and
    /// each run is checked against every promise of the operator. A run that breaks a promise is
    /// reduced as far as possible and printed as one line, which `stowage-proof replay` plays
    /// again.
    #[command(after_long_help = explore::EXAMPLES)]
    Explore(explore::ExploreArgs),
    /// Play one schedule again, and show what happens.
    ///
    /// Prints a timeline: actions of users, the operator's calls by number, answers of the
    /// Kubernetes API and the store with the changes there, the gateway, the tenants. Faults are
    /// marked. A broken promise is shown where it was detected and at the end. The same line always
    /// gives the same run.
    #[command(after_long_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// Merge the JSON documents of all shards of an exploration into one.
    ///
    /// Each shard is the output of `stowage-proof explore --shard I/N -o json`, from any machine.
    /// Documents that don't belong together are refused: another profile, seed, set of scenarios or
    /// build, or a shard that is repeated or missing.
    #[command(after_long_help = merge::EXAMPLES)]
    Merge(merge::MergeArgs),
    /// Put known bugs into the operator, one at a time, and check that the exploration finds each.
    ///
    /// Applies each patch of proof/mutants to a copy of the sources, builds the copy, and explores
    /// it until a promise is broken: first the scenarios that the patch names, then all. Needs
    /// cargo and the sources, which are only read. The first run builds everything once, which
    /// takes minutes; each mutant takes about twenty seconds.
    #[command(after_long_help = mutants::EXIT_CODES)]
    Mutants(mutants::MutantsArgs),
    /// Check the planner exhaustively over small worlds; print states, depth and time.
    ///
    /// Runs the production planner in worlds with one or two claims, their Secrets, a store, caches
    /// that lag, operators that crash, lost answers, and people who edit and tamper. Explores every
    /// state that such a world can reach. The safety promises must be true in each state, and from
    /// each state the world must come to rest correctly once no more faults happen. A broken
    /// promise is printed with the shortest path to it.
    #[command(after_long_help = model::EXIT_CODES)]
    Model(model::ModelArgs),
    /// Send the same random operations to a real server and the simulator, and print every
    /// difference.
    ///
    /// Operations are generated from the seed, a few dozen per sequence; each sequence has its own
    /// names. Both sides get them one after the other, and whole answers are compared except for
    /// UIDs, versions and times. Known and justified differences (docs/reference/fidelity.md) are
    /// counted. Any other difference is reduced and printed, with the command that plays it again.
    /// On a cluster, the project's CustomResourceDefinitions are installed and stay; everything
    /// else is removed. A store is called over HTTP, in buckets that are created for the run and
    /// removed.
    #[command(after_long_help = conformance::EXAMPLES)]
    Conformance(conformance::ConformanceArgs),
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns the reason if the command fails.
    pub fn execute(self) -> Result<(), Failure> {
        match self.command {
            Command::Explore(args) => explore::run_explore(args)?,
            Command::Replay(args) => replay::run_replay(args)?,
            Command::Merge(args) => merge::run_merge(args)?,
            Command::Mutants(args) => mutants::run_mutants(args)?,
            Command::Model(args) => model::run_model(args)?,
            Command::Conformance(args) => conformance::run_conformance(&args)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;
    use clap::CommandFactory;
    use clap::builder::{BoolishValueParser, ValueParser};

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    /// The parser of each flag also gets the flag's environment variable.
    #[test]
    fn flags_of_the_environment_are_yes_or_no_in_any_words() {
        let command = Cli::command();
        for subcommand in command.get_subcommands() {
            for flag in subcommand.get_arguments().filter(|it| matches!(it.get_action(), ArgAction::SetTrue)) {
                let boolish = format!("{:?}", ValueParser::from(BoolishValueParser::new()));
                let parser = format!("{:?}", flag.get_value_parser());
                assert_eq!(parser, boolish, "{} {}", subcommand.get_name(), flag.get_id());
            }
        }
    }

    #[test]
    fn a_comparison_needs_something_to_compare_with() {
        let parse = |more: &[&str]| Cli::try_parse_from(["stowage-proof", "conformance"].iter().chain(more));
        assert!(parse(&["--kubeconfig", "F", "--operations", "100", "-o", "json"]).is_ok());
        assert!(parse(&["--kubeconfig", "F", "--from", "1", "--sequence", "2"]).is_err());
        assert!(parse(&["--seed", "1"]).is_err());
        let store = ["--s3", "http://127.0.0.1:9000", "--s3-access-key", "A", "--s3-secret-key-file", "F"];
        assert!(parse(&store).is_ok());
        assert!(parse(&store[..4]).is_err());
        assert!(parse(&[&store[..], &["--kubeconfig", "F"]].concat()).is_err());
    }

    #[test]
    fn worlds_of_the_model_are_known_by_name() {
        let cli = Cli::try_parse_from(["stowage-proof", "model", "one-claim-crashes", "--jobs", "1", "-o", "json"]);
        assert!(cli.is_ok());
        assert!(Cli::try_parse_from(["stowage-proof", "model", "no-such-world"]).is_err());
    }

    #[test]
    fn bounds_that_leave_nothing_are_refused() {
        for (flag, problem) in [
            ("--time-limit", "expected whole seconds, at least 1"),
            ("--max-states", "expected a number from 1 to "),
            ("--jobs", "expected a number from 1 to "),
        ] {
            let error = Cli::try_parse_from(["stowage-proof", "model", flag, "0"]).expect_err("it is wrong usage");
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
