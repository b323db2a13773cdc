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
    /// Play scenarios under every fault, and judge what comes of it.
    ///
    /// A scenario is what people do to one claim or a few. It is played once undisturbed, which
    /// numbers every call of the production operator, and then again and again with a fault at each
    /// call that the fault makes sense for. All of it happens in this process, with simulated time;
    /// each run is judged by every promise of the operator. A run that broke one is a line that
    /// `stowage-proof replay` plays again, and is made as small as it can be.
    #[command(after_long_help = explore::EXAMPLES)]
    Explore(explore::ExploreArgs),
    /// Play one schedule again, and show what happens.
    ///
    /// Prints who did what when: users, the operator's calls by their numbers, what the Kubernetes
    /// API and the store answered and what changed there, the gateway, the tenants. Faults are
    /// marked, and a broken promise stands where it shows and at the end. The same line gives the
    /// same run, always.
    #[command(after_long_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// Merge the JSON documents of all shards of an exploration into one.
    ///
    /// Each shard is `stowage-proof explore --shard I/N -o json`, on whatever machine. Documents
    /// that don't belong together are refused: of another profile, seed, set of scenarios or build,
    /// a shard twice or missing.
    #[command(after_long_help = merge::EXAMPLES)]
    Merge(merge::MergeArgs),
    /// Put known bugs into the operator, one at a time, and see whether the exploration finds each.
    ///
    /// Applies each patch of proof/mutants to a copy of the sources, builds that, and explores it
    /// until a promise is broken: first the scenarios that the patch names, then all. Needs the
    /// sources and cargo; they are only read. The first run builds everything once, which takes
    /// minutes, each mutant some twenty seconds.
    #[command(after_long_help = mutants::EXIT_CODES)]
    Mutants(mutants::MutantsArgs),
    /// Check the planner exhaustively over small worlds; print states, depth and time.
    ///
    /// Puts the production planner into worlds with a claim or two, their Secrets, a store, caches
    /// that lag, operators that crash, answers that get lost, people who edit and tamper, and goes
    /// through every state that such a world can come into. In each of them the safety promises
    /// must hold, and from each of them everything must come to rest as it should once nothing goes
    /// wrong any more. A broken promise is told with the shortest way to it.
    #[command(after_long_help = model::EXIT_CODES)]
    Model(model::ModelArgs),
    /// Ask a real server and the simulator the same, at random, and print every difference.
    ///
    /// Operations are made from the seed, a few dozen to a sequence, each in a place of its own.
    /// Both sides get them one after the other; answers are compared whole, but for UIDs, versions
    /// and times. Differences that are known and justified (docs/reference/fidelity.md) are
    /// counted; any other is made small and printed, with the line that plays it again. The
    /// project's definitions are put on the cluster and stay; all else is removed. A store is asked
    /// over HTTP, in buckets that are made for it and removed.
    #[command(after_long_help = conformance::EXAMPLES)]
    Conformance(conformance::ConformanceArgs),
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Why it did not succeed.
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

    /// What is set in the environment is given to this flag's parser.
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
