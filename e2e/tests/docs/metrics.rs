//! The reference of metrics, generated from the metrics that operator and gateway serve, and from
//! the alerts and panels that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use stowage_gateway::metrics::{Answered, Metrics, Trouble};
use stowage_gateway::quota::Gauge;
use stowage_gateway::refusal::Code;
use stowage_world::determinism::run_seeded;
use stowage_world::fixtures::{BASE, claim};
use stowage_world::{Accesses, Foreign, Options, World};

use super::generated::assert_page;

const ALERTS: &str = include_str!("../../../charts/stowage/files/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../charts/stowage/files/dashboard.json");

/// The values of a label.
enum Values {
    /// Exactly these values.
    These(&'static [&'static str]),
    /// Values by this description.
    Such(&'static str),
}
use Values::{Such, These};

/// Labels, each with the metric that has it (`""` for any), and its values. Rows with a metric come
/// before the one for any.
const LABELS: [(&str, &str, Values); 22] = [
    ("authentication", "", These(&["AuthHeader", "QueryString", "Form", "none"])),
    ("backend", "", Such("Name of the S3Backend")),
    ("code", "stowage_gateway_quota_refusals_total", Such("The error of S3 that the client was answered")),
    (
        "code",
        "",
        Such("The error of S3 that was answered, empty without one; `Other` for one that only the store knows"),
    ),
    ("controller", "", These(&CONTROLLERS)),
    ("deleting", "", These(&["true", "false"])),
    ("kind", "stowage_left_alone", These(&["s3backend", "bucketclaim", "bucketaccess"])),
    ("kind", "", These(&TROUBLES)),
    ("name", "leader_election_master_status", These(&["stowage-operator"])),
    ("name", "", These(&CONTROLLERS)),
    ("operation", "stowage_upstream_request_duration_seconds", Such("The operation of S3")),
    ("operation", "", Such("The operation of S3; `none` where the request was none")),
    ("phase", "stowage_objectbucketclaims", These(&["Pending", "Bound", "Released", "Failed"])),
    ("phase", "", These(&["Pending", "Creating", "Bound", "Failed", "Deleting"])),
    ("policy", "", These(&["Retain", "Delete"])),
    ("reason", "", Such("Reason of the condition Ready of a BucketAccess; `Pending` where it has none yet")),
    ("result", "controller_runtime_reconcile_total", These(&["success", "requeue_after", "error"])),
    (
        "result",
        "",
        These(&["success", "not_found", "conflict", "denied", "throttled", "unsupported", "failed", "no_answer"]),
    ),
    ("state", "", These(&["limited", "above-soft", "full", "failing"])),
    ("status", "", These(&["2xx", "3xx", "4xx", "5xx"])),
    ("trigger", "", These(&["interval", "request", "repair", "move", "revocation", "entry"])),
    ("version", "", Such("The operator's version")),
];

/// Values of the label `controller`. The last is served only with `--obc`.
const CONTROLLERS: [&str; 4] = ["bucketclaim", "s3backend", "bucketaccess", "objectbucketclaim"];

/// Troubles of the gateway with a store, explained in the runbook of StowageGatewayStoreTrouble.
const TROUBLES: [&str; 8] = ["key", "denied", "unreachable", "late", "not-s3", "not-set-up", "busy", "resting"];

/// Labels that always have all of their values, not only those that occurred.
const SHOWN: [&str; 7] = ["controller", "deleting", "kind", "phase", "policy", "state", "trigger"];

/// A metric family.
struct Family {
    /// Name in Prometheus; of a histogram without the suffixes of its series.
    name: String,
    kind: String,
    help: String,
    /// Labels with their values on the page.
    labels: BTreeMap<String, BTreeSet<String>>,
}

impl Family {
    /// Returns the names of its series.
    fn series(&self) -> Vec<String> {
        match self.kind.as_str() {
            "histogram" => ["_bucket", "_count", "_sum"].map(|part| format!("{}{part}", self.name)).into(),
            _ => vec![self.name.clone()],
        }
    }

    /// Returns its unit, which is part of its name.
    fn unit(&self) -> &'static str {
        let is_part = |unit: &str| self.name.split('_').any(|part| part == unit);
        ["seconds", "bytes"].into_iter().find(|unit| is_part(unit)).unwrap_or_default()
    }
}

/// Parses a page in the OpenMetrics text format; returns its families in order.
fn families(page: &str) -> Vec<Family> {
    let mut found: Vec<Family> = Vec::new();
    for line in page.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            let (name, help) = (name.to_owned(), help.trim_end_matches('.').to_owned());
            found.push(Family { name, help, kind: String::new(), labels: BTreeMap::new() });
        } else if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let family = found.last_mut().expect("a help text goes before the type");
            family.kind = kind.to_owned();
            family.name.push_str(match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            });
        } else if let Some((_, labels)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let family = found.last_mut().expect("its family goes before a sample");
            let labels = labels.split_once('}').map_or("", |(labels, _)| labels);
            for (label, value) in labels.split(',').filter_map(|label| label.split_once('=')) {
                if label != "le" {
                    family.labels.entry(label.to_owned()).or_default().insert(value.trim_matches('"').to_owned());
                }
            }
        }
    }
    found
}

/// Returns the metrics of an operator that is the leader and serves all kinds.
fn of_operator() -> Vec<Family> {
    let options = Options {
        seed: 1,
        elects: true,
        accesses: Accesses::Served,
        foreign: Some(Foreign::Own),
        ..Options::default()
    };
    families(&run_seeded(1, || async move {
        let mut world = World::new(options);
        world.apply(&world.kube(), BASE).await;
        let operator = world.start_operator();
        world.apply(&world.kube(), &claim("team-a", "photos")).await;
        world.pass(Duration::from_secs(120)).await;
        operator.metrics()
    }))
}

/// Returns the metrics of a gateway, with a value set for each.
fn of_gateway() -> Vec<Family> {
    let metrics = Metrics::new();
    let moment = Duration::from_millis(3);
    metrics.answered(&Answered { operation: None, status: 200, code: None, authentication: None, turnaround: moment });
    metrics.store_answered("main", moment);
    Trouble::ALL.into_iter().for_each(|trouble| metrics.trouble("main", trouble));
    metrics.resting(&[("main".to_owned(), true)]);
    metrics.quotas(&Gauge::default());
    metrics.no_room(Code::QuotaExceeded);
    families(&metrics.text().expect("it can be written"))
}

/// Returns all expressions, each with the link to its alert or the title of its panel.
fn askers() -> Vec<(String, String)> {
    let alerts: Value = serde_saphyr::from_str(ALERTS).expect("YAML");
    let groups = alerts["groups"].as_array().into_iter().flatten();
    let rules = groups.filter_map(|group| group["rules"].as_array()).flatten();
    let mut all: Vec<(String, String)> = rules
        .map(|rule| {
            let name = rule["alert"].as_str().expect("a name");
            (text(&rule["expr"]), format!("[{name}](../operate/runbooks/{name}.md)"))
        })
        .collect();
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    for panel in dashboard["panels"].as_array().into_iter().flatten() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        all.extend(targets.map(|target| (text(&target["expr"]), format!("panel *{}*", text(&panel["title"])))));
    }
    all
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Returns the alerts and panels that use a family, without duplicates.
fn asked_by(family: &Family, askers: &[(String, String)]) -> String {
    let is_named = |expression: &str| {
        let words: BTreeSet<&str> = expression.split(|it: char| !it.is_ascii_alphanumeric() && it != '_').collect();
        family.series().iter().any(|series| words.contains(series.as_str()))
    };
    let mut named: Vec<&str> = Vec::new();
    for (_, asker) in askers.iter().filter(|(expression, _)| is_named(expression)) {
        if !named.contains(&asker.as_str()) {
            named.push(asker);
        }
    }
    named.join(", ")
}

fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the index of the row in [`LABELS`] for this label of this family.
fn place_of(label: &str, family: &Family) -> usize {
    let is_it =
        |(name, metric, _): &(&str, &str, Values)| *name == label && (metric.is_empty() || *metric == family.name);
    LABELS.iter().position(is_it).unwrap_or_else(|| panic!("nothing tells of label {label} of {}", family.name))
}

fn write_families(heading: &str, families: &[Family], askers: &[(String, String)], page: &mut String) {
    let _ = write!(page, "\n## {heading}\n\n| metric | type | labels | unit | what it is | who asks for it |\n");
    page.push_str("|---|---|---|---|---|---|\n");
    for family in families {
        let labels = quoted(family.labels.keys().map(String::as_str));
        let Family { name, kind, help, .. } = family;
        let _ = writeln!(
            page,
            "| `{name}` | {kind} | {labels} | {} | {help} | {} |",
            family.unit(),
            asked_by(family, askers)
        );
    }
}

/// Writes the table of labels, each with its metrics and its values. Fails if other values are
/// served.
fn write_labels(families: &[&Family], page: &mut String) {
    page.push_str("\n## Labels\n\n| label | of | values |\n|---|---|---|\n");
    for (at, (label, metric, values)) in LABELS.iter().enumerate() {
        let has_it = |family: &&&Family| family.labels.contains_key(*label) && place_of(label, family) == at;
        let of: Vec<&&Family> = families.iter().filter(has_it).collect();
        assert!(!of.is_empty(), "no metric has label {label} {metric}");
        let served: BTreeSet<&str> = of.iter().flat_map(|it| &it.labels[*label]).map(String::as_str).collect();
        let told = match values {
            Such(words) => (*words).to_owned(),
            These(all) => {
                let known: BTreeSet<&str> = all.iter().copied().collect();
                assert!(served.is_subset(&known), "{label}: {served:?} is served");
                assert!(!SHOWN.contains(label) || served == known, "{label}: only {served:?} is served");
                quoted(all.iter().copied())
            }
        };
        let names = quoted(of.iter().map(|it| it.name.as_str()));
        let of = if metric.is_empty() && of.len() > 3 { "all others that have it".to_owned() } else { names };
        let _ = writeln!(page, "| `{label}` | {of} | {told} |");
    }
}

#[test]
fn the_metrics_are_those_that_are_served() {
    let (operator, gateway, askers) = (of_operator(), of_gateway(), askers());
    let mut page = String::from(
        "# Metrics\n\nGenerated from what operator and gateway serve at `/metrics`, in the OpenMetrics text format, and \
         from the chart's alerts\nand dashboard. Of a histogram there are `_bucket`, with the label `le`, `_count` and \
         `_sum`. No label names a claim,\na bucket or a namespace. How they get to Prometheus is in \
         [operate](../operate/README.md).\n",
    );
    write_families("Of the operator", &operator, &askers, &mut page);
    write_families("Of the gateway", &gateway, &askers, &mut page);
    write_labels(&operator.iter().chain(&gateway).collect::<Vec<_>>(), &mut page);
    assert_page("docs/reference/metrics.md", &page);
    let all = || operator.iter().chain(&gateway);
    assert!(all().count() > 30 && all().all(|it| !it.help.is_empty() && !it.kind.is_empty()), "{page}");
    // Every metric that a gateway registers: one without a value would not be served.
    let registered = include_str!("../../../gateway/src/metrics.rs").matches("registry.register(").count();
    assert_eq!(gateway.len(), registered, "{page}");
}

#[test]
fn a_page_is_read_family_by_family() {
    let page = "# HELP a_seconds How long.\n# TYPE a_seconds histogram\na_seconds_sum{b=\"c\"} 1\n\
                a_seconds_bucket{le=\"1\",b=\"d\"} 1\n# HELP e Many.\n# TYPE e counter\ne_total 1\n# EOF\n";
    let families = families(page);
    let names: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(names, ["a_seconds", "e_total"]);
    assert_eq!((families[0].unit(), families[0].help.as_str()), ("seconds", "How long"));
    assert_eq!(families[0].labels["b"], BTreeSet::from(["c".to_owned(), "d".to_owned()]));
    assert_eq!(families[0].labels.len(), 1);
    let askers =
        [("rate(a_seconds_count[5m])".to_owned(), "one".to_owned()), ("a_seconds_max".to_owned(), "two".to_owned())];
    assert_eq!(asked_by(&families[0], &askers), "one");
    assert_eq!(asked_by(&families[1], &askers), "");
}
