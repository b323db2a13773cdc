//! The Helm chart: its rendered objects, the values that it rejects, and its life on a real API
//! server.
//!
//! `checks` is pure: it checks rendered objects. `life` installs, upgrades and uninstalls the chart
//! on a control plane, over the objects of `kind-config`.

#[cfg(test)]
mod alerts_tests;
mod apply;
mod checks;
mod earlier;
pub(crate) mod helm;
mod life;
mod policies;
mod releases;
mod tokens;
mod values;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use stowage_testbed::console::{print, tell, unless_interrupted};
use stowage_testbed::control_plane::{ControlPlane, Programs};
use stowage_testbed::users::User;

use self::apply::PATIENCE;
use self::helm::{Helm, NAMESPACE};
use self::values::{Values, rendered, values};
use crate::simulator;

/// Namespaces that the chart's values name, and those that the chart creates.
const NAMESPACES: [&str; 9] = [
    "vault",
    "more-secrets",
    "team-a",
    releases::SERVED,
    releases::OTHER,
    "stowage-system-usage",
    "stowage-state",
    "stowage-state-usage",
    "stowage-counts",
];
/// Directories of kind-config that the chart is installed over.
const PARTS: [&str; 3] = ["usage", "operator", "gateway"];

#[derive(Debug, Args)]
pub(crate) struct ChartArgs {
    /// Directory of the chart.
    #[arg(long, env = "STOWAGE_CHART", value_name = "DIR", default_value = "charts/stowage")]
    chart: PathBuf,
    /// Directory of values that the chart has to reject; the first line of each file has a part of
    /// the expected message.
    #[arg(long, env = "STOWAGE_WRONG_VALUES", value_name = "DIR", default_value = "e2e/chart/wrong")]
    wrong: PathBuf,
    /// Directory of earlier charts' values, for upgrades to this one.
    #[arg(long, env = "STOWAGE_EARLIER_VALUES", value_name = "DIR", default_value = "e2e/chart/earlier")]
    earlier: PathBuf,
    /// Directory of the project's manifests, over which the chart is installed.
    #[arg(long, env = "STOWAGE_MANIFESTS", value_name = "DIR", default_value = "kind-config")]
    manifests: PathBuf,
    /// Path of helm; by default the one that `e2e/helm/build` has built, else the one on the PATH.
    #[arg(long, env = "STOWAGE_HELM", value_name = "FILE")]
    helm: Option<PathBuf>,
}

/// Runs all checks, until they are done or a signal interrupts them.
///
/// # Errors
/// Returns the first check that failed, or a program that is missing.
pub(crate) async fn run(args: ChartArgs) -> Result<()> {
    unless_interrupted(play(&args)).await
}

async fn play(args: &ChartArgs) -> Result<()> {
    let helm = args.helm.as_deref().map_or_else(Helm::find, |program| Ok(Helm::at(program)))?;
    let (good, wrong) = (values(&args.chart.join("ci"))?, values(&args.wrong)?);
    ensure!(good.len() >= 12 && wrong.len() >= 8, "there are too few values to tell anything");
    for values in &wrong {
        refused(&helm, &args.chart, values).await.with_context(|| values.name.clone())?;
    }
    print(&format!("{} wrong values are refused, each with its reason", wrong.len()))?;
    let mut plane = ControlPlane::start(&Programs::find()?, PATIENCE).await?;
    let client = plane.client(User::Admin).await?;
    life::prepare(&client, &NAMESPACES).await?;
    let mut taken = 0;
    for values in &good {
        let objects = rendered(&helm, &args.chart, values).await.with_context(|| values.name.clone())?;
        let wrong = checks::complaints(&objects);
        ensure!(wrong.is_empty(), "{}: {}", values.name, wrong.join("; "));
        let dry = life::dry_run(&client, &objects).await.with_context(|| values.name.clone())?;
        tell(&format!("{}: {} objects, {dry} taken by the API server", values.name, objects.len()));
        taken += dry;
    }
    print(&format!("{} values render; the API server takes {taken} objects, tried without effect", good.len()))?;
    let least = good.iter().find(|values| values.name == "least-values").context("there are no least values")?;
    // The values that let the operator serve every kind.
    let most = good.iter().find(|values| values.name == "obc-values").context("there are no values with obc")?;
    let objects = rendered(&helm, &args.chart, most).await?;
    let rights = checks::same_rights(&objects, &manifests(&args.manifests, &PARTS)?);
    ensure!(rights.is_empty(), "the chart's rights are not those of kind-config: {}", rights.join("; "));
    rights_in_namespaces(&helm, args, &good).await?;
    print("its rights are those of kind-config, which the tests play")?;
    rights_of_tokens(&helm, args, &good).await?;
    let life = life::Life {
        helm: &helm,
        chart: &args.chart,
        values: least,
        kubeconfig: plane.kubeconfig(),
        client,
        waits: false,
    };
    life.play(manifests(&args.manifests, &PARTS)?).await?;
    releases::play(&life).await?;
    plane.check()?;
    on_simulator(&helm, args, least).await
}

/// Plays the same life on the simulator. It reports workloads as ready, so helm can wait.
async fn on_simulator(helm: &Helm, args: &ChartArgs, values: &Values) -> Result<()> {
    let folder = tempfile::TempDir::new().context("there is no room for temporary files")?;
    let up = simulator::start(folder.path(), true).await?;
    let kubeconfig = up.served().kubeconfig.clone();
    let read = Kubeconfig::read_from(&kubeconfig).context("its kubeconfig can't be read")?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    life::prepare(&client, &NAMESPACES).await?;
    let life = life::Life { helm, chart: &args.chart, values, kubeconfig, client, waits: true };
    life.play(manifests(&args.manifests, &PARTS)?).await.context("on the simulator")?;
    releases::play(&life).await.context("on the simulator")?;
    let earlier = earlier::Earlier::of(&args.chart, &args.earlier)?;
    earlier.render(&life).await?;
    earlier.upgrade(&life).await.context("on the simulator")?;
    up.stop().await;
    print("all of that on the simulator too, where helm waits until everything is ready")
}

/// Checks that the rights of an operator that serves some namespaces are those of kind-config,
/// apart from the names of the namespaces.
async fn rights_in_namespaces(helm: &Helm, args: &ChartArgs, good: &[Values]) -> Result<()> {
    let values = good.iter().find(|values| values.name == "namespaced-values").context("there are no such values")?;
    let objects = rendered(helm, &args.chart, values).await?;
    let names =
        |role: &Value| role["rules"].as_array().into_iter().flatten().any(|it| it["resources"][0] == "namespaces");
    let mut installed = manifests(&args.manifests, &["usage", "namespaced", "gateway"])?;
    for role in installed.iter_mut().filter(|role| names(role)) {
        for rule in role["rules"].as_array_mut().into_iter().flatten().filter(|it| it["resources"][0] == "namespaces") {
            rule["resourceNames"] = json!(["team-a", "team-b"]);
        }
    }
    // These values also let operator and gateway read admin Secrets in another namespace.
    let reads = |role: &&Value| role["metadata"]["namespace"] != "vault";
    let objects: Vec<Value> = objects.iter().filter(reads).cloned().collect();
    let rights = checks::same_rights(&objects, &installed);
    ensure!(rights.is_empty(), "the rights in namespaces are not those of kind-config: {}", rights.join("; "));
    Ok(())
}

/// Checks that each token has the rights that `docs/security.md` lists, in each mode.
async fn rights_of_tokens(helm: &Helm, args: &ChartArgs, good: &[Values]) -> Result<()> {
    for (mode, tokens::Mode { values, .. }) in tokens::MODES.iter().enumerate() {
        let found = good.iter().find(|it| it.name == *values).with_context(|| format!("there is no {values}"))?;
        let objects = rendered(helm, &args.chart, found).await?;
        let wrong = tokens::contradictions(mode, &objects);
        ensure!(wrong.is_empty(), "{values}: {}", wrong.join("; "));
    }
    print("each token may do what docs/security.md says of a stolen one, in each mode")
}

async fn refused(helm: &Helm, chart: &Path, values: &Values) -> Result<()> {
    let says = values.text.lines().next().and_then(|line| line.strip_prefix("# says: "));
    let says = says.context("its first line doesn't say with which words it is refused")?;
    let Err(why) = helm.template(chart, &values.path).await else { return Err(anyhow!("it is not refused")) };
    let why = format!("{why:#}");
    ensure!(why.contains(says), "it is refused, but without the words `{says}`: {why}");
    Ok(())
}

/// Reads the manifests of these directories, as `kubectl apply -k` would install them.
fn manifests(directory: &Path, parts: &[&str]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for part in parts {
        for file in values(&directory.join(part))? {
            if file.name == "kustomization" {
                continue;
            }
            let objects: Vec<Value> = serde_saphyr::from_multiple(&file.text)
                .with_context(|| format!("{} is no YAML", file.path.display()))?;
            all.extend(objects.into_iter().map(placed));
        }
    }
    Ok(all)
}

/// Sets the namespace, as the kustomization does.
fn placed(mut object: Value) -> Value {
    if !checks::is_of_cluster(&object) && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = NAMESPACE.into();
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        subject["namespace"] = NAMESPACE.into();
    }
    object
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Collects the paths of all values, below `within`.
    fn names_of_values(value: &Value, within: &str, all: &mut BTreeSet<String>) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let path = format!("{within}/{name}");
            names_of_values(value, &path, all);
            all.insert(path);
        }
    }

    /// Collects the paths of all values in the schema, except for names that the user chooses.
    fn names_of_schema(schema: &Value, within: &str, all: &mut BTreeSet<String>) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{within}/{name}");
            names_of_schema(schema, &path, all);
            all.insert(path);
        }
    }

    #[test]
    fn the_schema_knows_each_value_and_no_other() {
        let values = include_str!("../../../charts/stowage/values.yaml");
        let values: Value = serde_saphyr::from_str(values).expect("YAML");
        let schema = include_str!("../../../charts/stowage/values.schema.json");
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        let (mut ours, mut known) = (BTreeSet::new(), BTreeSet::new());
        names_of_values(&values, "", &mut ours);
        names_of_schema(&schema, "", &mut known);
        // Helm adds this one.
        known.remove("/global");
        ours.retain(|name| !name.contains("/resources/"));
        assert!(ours.len() > 80, "where are the values?");
        assert_eq!(ours, known);
    }

    #[test]
    fn templates_take_what_is_missing_from_a_copy_of_the_values() {
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/stowage");
        let read = |path: &Path| std::fs::read_to_string(path).expect("it can be read");
        let (copy, ours) = (read(&chart.join("files/values.yaml")), read(&chart.join("values.yaml")));
        assert_eq!(copy, ours, "cp charts/stowage/values.yaml charts/stowage/files/");
        let mut folders = vec![chart.join("templates")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it can be listed") {
                let path = entry.expect("it can be listed").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_none_or(|it| it != "tpl") {
                    let first = read(&path).lines().next().unwrap_or_default().to_owned();
                    assert_eq!(first, r#"{{- include "stowage.defaults" . -}}"#, "{}", path.display());
                }
            }
        }
    }

    #[test]
    fn the_definitions_of_the_chart_are_those_of_this_version() {
        let (chart, ours) =
            (include_str!("../../../charts/stowage/files/crds.yaml"), include_str!("../../../crds/crds.yaml"));
        assert_eq!(chart, ours, "`just crds` writes both");
    }
}
