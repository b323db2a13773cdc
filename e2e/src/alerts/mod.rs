//! Tests of the alerts: each fires in its own scene and in no other.
//!
//! A scene plays a problem in the simulator, in virtual time, with the production operator and
//! gateway, and scrapes both like Prometheus. `promtool` then evaluates the chart's rules over the
//! scrapes. This tests the expression and its duration, and that the metrics it needs are served in
//! that situation.

mod environment;
mod promtool;
mod scenes;
mod scrapes;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum as _};
use stowage_testbed::console::{print, unless_interrupted};
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::determinism::run_seeded;

use self::environment::{Environment, GATEWAY, OPERATOR};
use self::promtool::Promtool;
use self::scenes::Scene;
use self::scrapes::Scrapes;

#[derive(Debug, Args)]
pub(crate) struct AlertsArgs {
    /// Scenes to play; all by default.
    #[arg(value_enum, value_name = "SCENE")]
    scenes: Vec<Scene>,
    /// The chart's file of alerts.
    #[arg(long, env = "STOWAGE_ALERTS", value_name = "FILE", default_value = "charts/stowage/files/alerts.yaml")]
    alerts: PathBuf,
}

/// Plays the scenes one after the other.
///
/// # Errors
/// Fails at the first scene with unexpected or missing alerts, or if a program is missing.
pub(crate) async fn run(args: AlertsArgs) -> Result<()> {
    unless_interrupted(play(&args)).await
}

async fn play(args: &AlertsArgs) -> Result<()> {
    let promtool = Promtool::find()?;
    let text = std::fs::read_to_string(&args.alerts);
    let rules = rules(&text.with_context(|| format!("can't read {}", args.alerts.display()))?);
    let place = tempfile::tempdir().context("there is no room for a file")?;
    let file = place.path().join("rules.yaml");
    std::fs::write(&file, &rules).with_context(|| format!("can't write {}", file.display()))?;
    let all = if args.scenes.is_empty() { Scene::value_variants() } else { &args.scenes };
    for scene in all {
        judge(*scene, &promtool, &file, &rules).await.with_context(|| scene.name())?;
    }
    Ok(())
}

async fn judge(scene: Scene, promtool: &Promtool, file: &Path, rules: &str) -> Result<()> {
    // The simulator's virtual time is local to a thread.
    let scrapes = tokio::task::spawn_blocking(move || scraped(scene)).await.context("the scene broke down")??;
    let fires = scene.fires();
    promtool.compare(file, &scrapes, |metric| rules.contains(metric), &fires).await?;
    let fired = if fires.is_empty() { "no alert".to_owned() } else { Vec::from_iter(fires).join(", ") };
    print(&format!("{}: {fired}, within {} minutes", scene.name(), scrapes.last() / 60))
}

fn scraped(scene: Scene) -> Result<Scrapes> {
    run_seeded(1, || async move {
        let mut environment = Environment::new(scene.options()).await;
        scene.play(&mut environment).await?;
        Ok(environment.scrapes)
    })
}

/// Returns the rules with the labels of a scene's targets filled in.
fn rules(alerts: &str) -> String {
    let labels = |job: &str| format!("namespace=\"{OPERATOR_NAMESPACE}\",job=\"{job}\"");
    alerts.replace("$operator", &labels(OPERATOR.job)).replace("$gateway", &labels(GATEWAY.job))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    const ALERTS: &str = include_str!("../../../charts/stowage/files/alerts.yaml");

    #[test]
    fn each_alert_has_a_scene_of_its_own() {
        let rules: Value = serde_saphyr::from_str(ALERTS).unwrap();
        let groups = rules["groups"].as_array().unwrap().iter();
        let alerts: BTreeSet<&str> = groups
            .flat_map(|group| group["rules"].as_array().unwrap())
            .map(|rule| rule["alert"].as_str().unwrap())
            .collect();
        let named: BTreeSet<&str> = Scene::value_variants().iter().filter_map(|scene| scene.alert()).collect();
        assert_eq!(named, alerts);
    }
}
