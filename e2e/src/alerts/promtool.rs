//! The program `promtool`, which evaluates rules like Prometheus.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use stowage_testbed::tools;

use super::scrapes::{INTERVAL, Scrapes};

/// The version that `e2e/promtool/build` builds.
const VERSION: &str = include_str!("../../promtool/version");

/// Path of the program.
pub(super) struct Promtool(String);

impl Promtool {
    /// Finds the program where `e2e/promtool/build` puts it, or else on the `PATH`.
    pub(super) fn find() -> Result<Self> {
        tools::built("promtool", VERSION.trim()).map(Self)
    }

    /// Evaluates the rules over all scrapes, and compares the alerts that fired at any time with
    /// the expected ones.
    ///
    /// # Errors
    /// Fails if other alerts fired, or if the program can't be run.
    pub(super) async fn compare(
        &self,
        rules: &Path,
        scrapes: &Scrapes,
        wanted: impl Fn(&str) -> bool,
        fires: &BTreeSet<&str>,
    ) -> Result<()> {
        let test = rules.with_file_name("test.yaml");
        // JSON is valid YAML.
        let text = serde_json::to_string(&test_of(rules, scrapes, wanted, fires)).context("it can't be written")?;
        std::fs::write(&test, text).with_context(|| format!("can't write {}", test.display()))?;
        tools::run(&self.0, &["test", "rules", &test.display().to_string()]).await.map(drop)
    }
}

fn test_of(rules: &Path, scrapes: &Scrapes, wanted: impl Fn(&str) -> bool, fires: &BTreeSet<&str>) -> Value {
    let series: Vec<Value> = scrapes
        .written(wanted)
        .into_iter()
        .map(|(series, values)| json!({"series": series, "values": values}))
        .collect();
    let fired: Vec<Value> =
        fires.iter().map(|alert| json!({"labels": format!("{{alertname=\"{alert}\"}}"), "value": 1})).collect();
    let interval = format!("{INTERVAL}s");
    json!({
        "rule_files": [rules.file_name().unwrap_or_default().to_string_lossy()],
        "evaluation_interval": interval,
        "tests": [{
            "interval": interval,
            "input_series": series,
            "promql_expr_test": [{
                "expr": "group by (alertname) (max_over_time(ALERTS{alertstate=\"firing\"}[1d]))",
                "eval_time": format!("{}s", scrapes.last()),
                "exp_samples": fired,
            }],
        }],
    })
}
