//! The commands for a running simulator: `env`, `calls`, `fault`, `clock`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand, ValueEnum};
use faults::proxy::EffectLine;
use http::{Method, StatusCode, Uri};
use jiff::{Span, SpanRelativeTo, Unit};
use serde::Deserialize;
use serde_json::{Value, json};
use terminal::quoted;
use terminal::{Failure, Output, print_json, printed};

use super::client::Client;
use crate::up::ADMIN_URL;

/// Interval between checks of a claim's readiness.
const GLANCE: Duration = Duration::from_millis(100);

/// The simulator to connect to.
#[derive(Debug, Args)]
pub(super) struct Simulator {
    /// URL of its admin API, as printed by `stowage-sim up`.
    #[arg(long, env = "STOWAGE_SIM", value_name = "URL", default_value = ADMIN_URL, global = true)]
    simulator: Uri,
}

impl Simulator {
    pub(super) fn client(&self) -> Result<Client, String> {
        Client::new(&self.simulator)
    }
}

#[derive(Debug, Args)]
pub(super) struct EnvArgs {
    /// The claim: NAMESPACE/NAME, or just NAME for namespace default. If no such claim exists, the
    /// BucketAccess with this name is used, or else the ObjectBucketClaim.
    #[arg(value_name = "NAMESPACE/CLAIM")]
    claim: String,
    /// Output format.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "shell")]
    output: EnvOutput,
    /// Seconds to wait for the claim to become ready; 0 to not wait.
    #[arg(long, env = "STOWAGE_WAIT", value_name = "SECONDS", default_value_t = 10)]
    wait: u64,
    #[command(flatten)]
    simulator: Simulator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EnvOutput {
    /// `export` lines, for eval "$(stowage-sim env team-a/photos)".
    Shell,
    /// Lines for an .env file.
    Dotenv,
    /// One JSON object.
    Json,
}

#[derive(Debug, Args)]
pub(super) struct CallsArgs {
    /// Print further calls as they happen, until interrupted.
    #[arg(short, long, env = "STOWAGE_FOLLOW", value_parser = BoolishValueParser::new())]
    follow: bool,
    /// Print only calls with higher numbers; by default the last 1,000 calls.
    #[arg(long, env = "STOWAGE_AFTER", value_name = "NUMBER")]
    after: Option<u64>,
    /// Output format: text for people, or one line of JSON per call.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
    #[command(flatten)]
    simulator: Simulator,
}

#[derive(Debug, Subcommand)]
pub(super) enum FaultCommand {
    /// Add faults to future calls, in the syntax of plans: `s3:CreateBucket@1 lost-answer`.
    Add {
        /// The plan: calls and their faults, separated by `;`. A number means that call, `@K` the
        /// K-th of its kind from now on.
        plan: String,
        #[command(flatten)]
        simulator: Simulator,
    },
    /// List the faults that have not met a call yet.
    List {
        #[command(flatten)]
        simulator: Simulator,
    },
    /// Remove all faults. A clock that was set wrong stays so.
    Clear {
        #[command(flatten)]
        simulator: Simulator,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ClockCommand {
    /// Move time forward, by 90d, 36h, 10m or 1h30m for example. The operator restarts under the
    /// new time.
    ///
    /// Ages that kubectl computes itself, as in `describe`, use the machine's own clock and show as
    /// invalid then.
    Advance {
        /// The time span to add.
        by: Span,
        #[command(flatten)]
        simulator: Simulator,
    },
    /// Print the simulator's time, and how far it is ahead of the machine's.
    Show {
        #[command(flatten)]
        simulator: Simulator,
    },
}

/// Runs one command's future on a new runtime.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("can't start: {error}"))?.block_on(work)
}

/// Runs `stowage-sim env`.
pub(super) fn env(args: &EnvArgs) -> Result<(), Failure> {
    let (namespace, name) = args.claim.split_once('/').unwrap_or(("default", &args.claim));
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        return Err(Failure::Usage(format!("{} is no NAMESPACE/CLAIM", args.claim)));
    }
    let variables = block_on(async { connection(args, namespace, name).await })?;
    let line = |(key, value): (&String, &String)| match args.output {
        EnvOutput::Dotenv => format!("{key}={}\n", quoted(value)),
        _ => format!("export {key}={}\n", quoted(value)),
    };
    if args.output == EnvOutput::Json {
        return Ok(print_json(&variables)?);
    }
    let text: String = variables.iter().map(line).collect();
    Ok(printed(io::stdout().write_all(text.as_bytes()))?)
}

/// Returns the content of a claim's Secret once the claim is ready.
async fn connection(args: &EnvArgs, namespace: &str, name: &str) -> Result<BTreeMap<String, String>, Failure> {
    let client = args.simulator.client()?;
    let path = format!("/claims/{namespace}/{name}/connection");
    let deadline = Instant::now() + Duration::from_secs(args.wait);
    loop {
        let (status, answer) = client.ask(Method::GET, &path, None).await?;
        match status {
            StatusCode::OK => {
                let read = serde_json::from_value(answer);
                return read.map_err(|error| Failure::Found(format!("the simulator's answer makes no sense: {error}")));
            }
            // The claim may still be created, or become ready.
            StatusCode::NOT_FOUND | StatusCode::CONFLICT if Instant::now() < deadline => {
                tokio::time::sleep(GLANCE).await;
            }
            StatusCode::CONFLICT => {
                return Err(Failure::Found(format!("{namespace}/{name} isn't ready: {}", error_of(&answer))));
            }
            _ => return Err(Failure::Found(error_of(&answer))),
        }
    }
}

pub(super) fn error_of(answer: &Value) -> String {
    answer["error"].as_str().unwrap_or("the simulator refuses without a word").to_owned()
}

/// Sends a request and returns the JSON of a successful answer.
pub(super) async fn expect(client: &Client, method: Method, path: &str, body: Option<Value>) -> Result<Value, Failure> {
    let (status, answer) = client.ask(method, path, body).await?;
    if status.is_success() { Ok(answer) } else { Err(Failure::Found(error_of(&answer))) }
}

#[derive(Deserialize)]
struct Calls {
    calls: Vec<EffectLine>,
}

/// Runs `stowage-sim calls`.
pub(super) fn calls(args: &CallsArgs) -> Result<(), Failure> {
    block_on(async {
        let client = args.simulator.client()?;
        let mut after = args.after;
        loop {
            let path = after.map_or_else(|| "/calls".to_owned(), |after| format!("/calls?after={after}"));
            let answer = expect(&client, Method::GET, &path, None).await?;
            let read: Calls = serde_json::from_value(answer)
                .map_err(|error| format!("the simulator's answer makes no sense: {error}"))?;
            for call in &read.calls {
                print_call(call, args.output)?;
            }
            after = read.calls.last().map(|call| call.number).or(after).or(Some(0));
            match (args.follow, read.calls.is_empty()) {
                (false, _) => return Ok(()),
                (true, true) => tokio::time::sleep(GLANCE).await,
                (true, false) => {}
            }
        }
    })
}

/// Prints one line for a call.
fn print_call(call: &EffectLine, output: Output) -> Result<(), Failure> {
    let line = match output {
        Output::Json => serde_json::to_string(call).map_err(|error| error.to_string())?,
        Output::Text => {
            let fault = call.fault.as_ref().map(|fault| format!("   [{fault}]")).unwrap_or_default();
            let seconds = Duration::from_millis(call.began_ms).as_secs_f64();
            format!("#{:<6} {seconds:>10.3} s  {:<10} {}{fault}", call.number, call.answer, call.call)
        }
    };
    let mut out = io::stdout();
    Ok(printed(writeln!(out, "{line}").and_then(|()| out.flush()))?)
}

/// Runs `stowage-sim fault`.
pub(super) fn fault(command: &FaultCommand) -> Result<(), Failure> {
    let (simulator, method, body) = match command {
        FaultCommand::Add { plan, simulator } => (simulator, Method::POST, Some(json!({"plan": plan}))),
        FaultCommand::List { simulator } => (simulator, Method::GET, None),
        FaultCommand::Clear { simulator } => (simulator, Method::DELETE, None),
    };
    let answer = block_on(async { expect(&simulator.client()?, method, "/faults", body).await })?;
    let armed = answer["armed"].as_str().unwrap_or_default();
    let text = if armed.is_empty() { "no fault waits for a call" } else { armed };
    Ok(printed(writeln!(io::stdout(), "{text}"))?)
}

/// Runs `stowage-sim clock`.
pub(super) fn clock(command: &ClockCommand) -> Result<(), Failure> {
    let answer = block_on(async {
        match command {
            ClockCommand::Advance { by, simulator } => {
                let body = json!({"advanceSeconds": seconds(by)?});
                expect(&simulator.client()?, Method::POST, "/clock", Some(body)).await
            }
            ClockCommand::Show { simulator } => {
                let status = expect(&simulator.client()?, Method::GET, "/status", None).await?;
                Ok(status["clock"].clone())
            }
        }
    })?;
    let now = answer["now"].as_str().unwrap_or_default();
    let ahead = answer["aheadSeconds"].as_u64().unwrap_or_default();
    Ok(printed(writeln!(io::stdout(), "{now}, {ahead} s ahead of this machine"))?)
}

/// Returns a span in whole seconds; a day has 24 hours.
fn seconds(by: &Span) -> Result<u32, Failure> {
    let total = by.total((Unit::Second, SpanRelativeTo::days_are_24_hours()));
    let total = total.map_err(|error| Failure::Usage(format!("{by:#} can't be told in seconds: {error}")))?;
    if !(total >= 1.0 && total <= f64::from(u32::MAX)) {
        return Err(Failure::Usage(format!("time can be moved by a second or more, ahead: not by {by:#}")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was looked at")]
    Ok(total as u32)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("90d", Some(7_776_000))]
    #[case("36h", Some(129_600))]
    #[case("1h30m", Some(5400))]
    #[case("2w", Some(1_209_600))]
    #[case("-1h", None)]
    #[case("0s", None)]
    #[case("1mo", None)]
    fn a_span_is_so_many_seconds(#[case] text: &str, #[case] expected: Option<u32>) {
        let span: Span = text.parse().expect("it is a span");
        assert_eq!(seconds(&span).ok(), expected);
    }
}
