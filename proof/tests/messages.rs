//! The operator's messages in every scenario, as a golden file: each status of a claim or a backend
//! and each Event, between the actions of people. A changed message shows as a difference.
//!
//! `just messages` writes the file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stowage_proof::explorer::{Schedule, run, scenarios};
use stowage_world::effects::{GatewayPlan, Plan};
use stowage_world::history::{History, Stored, What};

/// Environment variable that makes the test write the file instead of comparing it.
const WRITE: &str = "UPDATE_DOCS";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt")
}

/// Formats an object's status: its phase and, for each condition, status, reason and message.
fn status(object: &Value) -> Option<String> {
    let status = &object["status"];
    let conditions = status["conditions"].as_array()?;
    let mut text = status["phase"].as_str().map(|phase| format!(" {phase}")).unwrap_or_default();
    for condition in conditions {
        let field = |name: &str| condition[name].as_str().unwrap_or_default();
        let _ = write!(text, "\n      {}={} {}: {}", field("type"), field("status"), field("reason"), field("message"));
    }
    Some(text)
}

/// Returns the messages of a change of an object, if there are any.
fn said(change: &Stored, last: &mut BTreeMap<String, String>) -> Option<String> {
    let object = change.new.as_deref()?;
    let field = |name: &str| object[name].as_str().unwrap_or_default();
    match change.plural.as_str() {
        "bucketclaims" | "s3backends" => {
            let name = format!("{} {}", change.plural.trim_end_matches('s'), change.name);
            let text = status(object)?;
            let is_new = last.insert(name.clone(), text.clone()).as_ref() != Some(&text);
            is_new.then(|| format!("{name}:{text}"))
        }
        "events" => Some(format!("{} {}: {}", field("type"), field("reason"), field("note"))),
        _ => None,
    }
}

fn told(history: &History) -> String {
    let (mut text, mut last) = (String::new(), BTreeMap::new());
    for event in &history.events {
        match &event.what {
            What::Acted(what) => {
                let _ = writeln!(text, "  > {what}");
            }
            What::Stored(change) => {
                if let Some(said) = said(change, &mut last) {
                    let _ = writeln!(text, "    {said}");
                }
            }
            What::AtRest => return text,
            _ => {}
        }
    }
    text
}

#[test]
fn what_the_operator_says_in_every_scenario_is_as_it_was_read() {
    let mut text = String::new();
    for scenario in scenarios::ALL {
        let outcome = run(&Schedule { scenario, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() });
        let told = told(&outcome.history);
        assert!(told.contains("Ready="), "{} says nothing", scenario.name);
        let _ = writeln!(text, "{} ({}): {}\n{told}", scenario.name, scenario.phase, scenario.about);
    }
    if std::env::var_os(WRITE).is_some() {
        fs::write(golden(), &text).expect("it can be written");
    }
    let golden = fs::read_to_string(golden()).unwrap_or_default();
    let differs = golden.lines().zip(text.lines()).position(|(then, now)| then != now);
    let at = differs.unwrap_or_else(|| golden.lines().count().min(text.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("nothing").to_owned();
    assert!(
        golden == text,
        "line {} of proof/tests/messages.txt says\n{}\nand the operator says\n{}\nIf that is meant: just messages, and read the difference.",
        at + 1,
        line(&golden),
        line(&text)
    );
}
