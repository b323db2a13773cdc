//! The commands that try the operator, in a build without them: each says how to get a build that
//! has them.

use clap::{Args, Subcommand};

use super::Failure;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Play scenarios under every fault, and judge what comes of it (not in this build)
    Explore(Anything),
    /// Play one schedule again, and show what happens (not in this build)
    Replay(Anything),
    /// Merge the JSON documents of all shards of an exploration into one (not in this build)
    Merge(Anything),
    /// Put known bugs into the operator, one at a time, and see whether the exploration finds each
    /// (not in this build)
    Mutants(Anything),
    /// Check the planner exhaustively over small worlds; print states, depth and time (not in this
    /// build)
    Model(Anything),
    /// Ask a real server and the simulator the same, at random, and print every difference (not in
    /// this build)
    Conformance(Anything),
}

/// Whatever a build with the feature would understand.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct Anything {
    #[arg(hide = true, num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

/// Says which build has the command.
pub(super) fn run(command: Command) -> Result<(), Failure> {
    let (name, Anything { words }) = match command {
        Command::Explore(words) => ("explore", words),
        Command::Replay(words) => ("replay", words),
        Command::Merge(words) => ("merge", words),
        Command::Mutants(words) => ("mutants", words),
        Command::Model(words) => ("model", words),
        Command::Conformance(words) => ("conformance", words),
    };
    let words = words.iter().map(|word| format!(" {}", word.display())).collect::<String>();
    Err(Failure::Usage(format!(
        "this build has no {name}, to be built sooner; the one that has it: cargo run --release -p stowage-sim --features proof -- {name}{words}"
    )))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Failure};

    #[test]
    fn a_command_of_another_build_names_that_build() {
        let cli = Cli::try_parse_from(["stowage-sim", "explore", "create", "--seed", "7"]).expect("anything goes");
        let Err(Failure::Usage(why)) = cli.execute() else { panic!("it can't be done") };
        assert!(why.ends_with("--features proof -- explore create --seed 7"), "{why}");
    }
}
