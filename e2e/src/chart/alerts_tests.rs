//! Alerts and dashboard use only metrics that are served, and each alert has its page.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rstest::rstest;
use serde_json::Value;
use stowage_gateway::metrics::{Answered, Metrics, Trouble};
use stowage_gateway::quota::Gauge;
use stowage_gateway::refusal::Code;

/// The contract. The operator's tests compare its table of metrics with the served ones.
const SPEC: &str = include_str!("../../../docs/spec.md");
const ALERTS: &str = include_str!("../../../charts/stowage/files/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../charts/stowage/files/dashboard.json");
const SCHEMA: &str = include_str!("../../../charts/stowage/values.schema.json");
/// Prometheus' own metric about a target.
const OF_PROMETHEUS: &str = "up";
/// Keywords of PromQL that may be in the place of a metric.
const WORDS: [&str; 11] =
    ["and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "offset", "bool"];
/// Keywords that are followed by a list of labels.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// Returns the metrics that an expression names.
fn metrics_of(expression: &str) -> BTreeSet<String> {
    let mut metrics = BTreeSet::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_' || it == ':'));
        let (word, behind) = rest.split_at(length.unwrap_or(rest.len()));
        rest = match first {
            '{' => past(rest, '}'),
            '[' => past(rest, ']'),
            '"' => past(&rest[1..], '"'),
            _ if word.is_empty() => &rest[first.len_utf8()..],
            _ => behind,
        };
        let next = rest.trim_start();
        if BEFORE_LABELS.contains(&word) && next.starts_with('(') {
            rest = past(next, ')');
        } else if word.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
            && !WORDS.contains(&word)
            // An identifier before a parenthesis is a function, as in `sum (a)` and `sum by (b)
            // (a)`.
            && !next.starts_with('(')
            && !BEFORE_LABELS.iter().any(|label| next.starts_with(&format!("{label} (")))
        {
            metrics.insert(word.to_owned());
        }
    }
    metrics
}

/// Returns the text after the first occurrence of `end`.
fn past(text: &str, end: char) -> &str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

/// Collects all strings of members with this name, at any depth.
fn strings<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                if member == name {
                    found.extend(value.as_str());
                }
                strings(value, name, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, name, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the operator's series by the contract. Its durations are histograms.
fn of_operator() -> BTreeSet<String> {
    let rows = SPEC.lines().filter_map(|line| line.strip_prefix("| `4.metric.")?.split_once('`'));
    let names: BTreeSet<&str> = rows.map(|(name, _)| name).collect();
    let series = names.into_iter().flat_map(|name| {
        if name.ends_with("_seconds") {
            ["_bucket", "_count", "_sum"].map(|part| format!("{name}{part}")).to_vec()
        } else {
            vec![name.to_owned()]
        }
    });
    series.collect()
}

/// Returns the gateway's series, with a value set for each.
fn of_gateway() -> BTreeSet<String> {
    let metrics = Metrics::new();
    let moment = Duration::from_millis(3);
    metrics.answered(&Answered { operation: None, status: 200, code: None, authentication: None, turnaround: moment });
    metrics.store_answered("main", moment);
    metrics.trouble("main", Trouble::Late);
    metrics.resting(&[("main".to_owned(), true)]);
    metrics.quotas(&Gauge::default());
    Code::ALL.iter().for_each(|code| metrics.no_room(*code));
    let text = metrics.text().expect("it can be written");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// Returns the metrics that the expressions name and nothing serves.
fn unserved(expressions: &[&str]) -> Vec<String> {
    let mut served = of_operator();
    served.extend(of_gateway());
    served.insert(OF_PROMETHEUS.to_owned());
    let named: BTreeSet<String> = expressions.iter().flat_map(|expression| metrics_of(expression)).collect();
    named.difference(&served).cloned().collect()
}

fn alerts() -> Value {
    serde_saphyr::from_str(ALERTS).expect("YAML")
}

fn names_of_alerts() -> BTreeSet<String> {
    let (alerts, mut names) = (alerts(), Vec::new());
    strings(&alerts, "alert", &mut names);
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn alerts_and_dashboard_ask_for_what_is_served() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    for (what, least, value) in [("alerts", 13, alerts()), ("dashboard", 24, dashboard)] {
        let mut expressions = Vec::new();
        strings(&value, "expr", &mut expressions);
        assert!(expressions.len() >= least, "where are the {what}?");
        for expression in &expressions {
            assert!(!metrics_of(expression).is_empty(), "{what}: {expression} asks for nothing");
        }
        assert_eq!(unserved(&expressions), [] as [String; 0], "{what}");
    }
}

#[rstest]
#[case("stowage_claims{phase=\"up\"} > 0", &[])]
#[case("stowage_claim > 0", &["stowage_claim"])]
#[case("sum by (stowage) (rate(stowage_rotations[5m])) / 2", &["stowage_rotations"])]
#[case("sum(stowage_gateway_received_bytes) by (pod)", &["stowage_gateway_received_bytes"])]
#[case("stowage_upstream_request_duration_seconds", &["stowage_upstream_request_duration_seconds"])]
fn what_nobody_serves_is_told(#[case] expression: &str, #[case] told: &[&str]) {
    assert_eq!(unserved(&[expression]), told);
}

/// Expressions select operator and gateway by labels that the chart fills in. Without these labels
/// an expression would match every installation, and other operators.
#[test]
fn each_alert_is_about_this_installation_alone() {
    let groups = alerts();
    let groups = groups["groups"].as_array().expect("a list");
    assert_eq!(groups.len(), 2, "the template knows these two");
    for group in groups {
        let name = group["name"].as_str().expect("a name");
        let mut expressions = Vec::new();
        strings(group, "expr", &mut expressions);
        for expression in expressions {
            let selectors = expression.matches('{').count();
            assert!(selectors > 0, "{expression}");
            assert_eq!(expression.matches(&format!("{{${name}")).count(), selectors, "{expression}");
        }
    }
}

#[test]
fn each_alert_says_how_grave_it_is_and_what_to_look_at() {
    let groups = alerts();
    let rules = groups["groups"].as_array().into_iter().flatten().filter_map(|group| group["rules"].as_array());
    for rule in rules.flatten() {
        let name = rule["alert"].as_str().expect("a name");
        assert!(name.starts_with("Stowage"), "{name}");
        let severity = rule["labels"]["severity"].as_str();
        assert!(severity.is_some_and(|it| ["critical", "warning", "info"].contains(&it)), "{name}");
        let said = [&rule["for"], &rule["annotations"]["summary"], &rule["annotations"]["description"]];
        assert!(said.iter().all(|it| it.as_str().is_some_and(|text| !text.is_empty())), "{name}");
    }
}

#[test]
fn each_alert_has_its_page_and_each_page_its_alert() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = std::fs::read_dir(root.join("docs/operate/runbooks")).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let pages: BTreeSet<String> =
        paths.filter_map(|path| path.file_stem().map(|name| name.to_string_lossy().into_owned())).collect();
    assert_eq!(names_of_alerts(), pages);
    let index = std::fs::read_to_string(root.join("docs/operate/README.md")).expect("it is there");
    for name in &pages {
        assert!(index.contains(&format!("[{name}](runbooks/{name}.md)")), "{name}");
    }
}

#[test]
fn the_schema_knows_which_alerts_can_be_left_out() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let known = &schema["properties"]["metrics"]["properties"]["prometheusRule"]["properties"]["disabled"];
    let known = known["propertyNames"]["enum"].as_array().expect("a list");
    let known: BTreeSet<String> = known.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    assert_eq!(known, names_of_alerts());
}
