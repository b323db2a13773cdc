//! Environment of one command: a control plane, a store behind counting proxies, two backends, and
//! the tenants' namespaces. Each turn has a separate one, so that no turn finds data of another.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use stowage_testbed::control_plane::{API_SERVER, ControlPlane, ETCD, Programs};
use stowage_testbed::environment::setup::GATEWAY;
use stowage_testbed::objects::from_json;
use stowage_testbed::process::Process;
use stowage_testbed::simulated::REGION;
use stowage_testbed::store::Store;
use stowage_testbed::users::User;
use tokio::time::{sleep, timeout};

use super::claims::Claims;
use super::counter::{Counter, Passed};
use super::counts::{Audit, Counts};
use crate::measure::stores::{Program, Serving};
use crate::measure::usage::Usage;

/// The operator's namespace.
pub(crate) const HOME: &str = "stowage-system";
/// The measured backend, and the one that will hang.
pub(crate) const MAIN: &str = "main";
pub(crate) const HUNG: &str = "hung";
/// The Secret with the store's key.
const ADMIN: &str = "store-admin";
/// Interval between checks for further requests.
const LOOK: Duration = Duration::from_secs(1);

/// A control plane and a store.
pub(crate) struct Environment {
    pub(crate) claims: Claims,
    audit: Mutex<Audit>,
    /// Proxies in front of the store, as endpoints of the measured backend and of the one that will
    /// hang.
    pub(crate) main: Counter,
    pub(crate) hung: Counter,
    /// Client of the store that bypasses the proxies.
    pub(crate) store: Store,
    pub(crate) serving: Serving,
    pub(crate) plane: ControlPlane,
    kubeconfig: PathBuf,
}

/// Settings of an environment.
pub(crate) struct Plan<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) store: &'a Program,
    /// CustomResourceDefinitions as YAML; those of this version by default.
    pub(crate) definitions: Option<&'a Path>,
    pub(crate) namespaces: &'a [String],
    pub(crate) patience: Duration,
}

/// All counts at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) at: Instant,
    pub(crate) kubernetes: Counts,
    pub(crate) store: Passed,
    pub(crate) operator: Usage,
    pub(crate) api_server: Usage,
    pub(crate) etcd: Usage,
    /// Zero for the simulated store.
    pub(crate) server: Usage,
    /// The harness: tenants, proxies, bare loop.
    pub(crate) harness: Usage,
}

/// Accessor of a process' usage in a mark.
type OfProcess = fn(&Mark) -> &Usage;

impl Mark {
    /// The reported processes, with their names.
    pub(crate) const PROCESSES: [(&str, OfProcess); 5] = [
        ("operator", |mark| &mark.operator),
        ("API server", |mark| &mark.api_server),
        ("etcd", |mark| &mark.etcd),
        ("store", |mark| &mark.server),
        ("harness", |mark| &mark.harness),
    ];
}

impl Environment {
    pub(crate) async fn start(plan: &Plan<'_>) -> Result<Self> {
        let serving = plan.store.start(plan.patience, None).await?;
        let (main, hung) = (Counter::start(&serving.endpoint).await?, Counter::start(&serving.endpoint).await?);
        let plane = ControlPlane::start(plan.programs, plan.patience).await?;
        let admin = plane.client(User::Admin).await?;
        define(&admin, plan.definitions, plan.patience).await?;
        for namespace in plan.namespaces.iter().map(String::as_str).chain([HOME]) {
            let namespace: Namespace = from_json(json!({"metadata": {"name": namespace}}));
            create(Api::all(admin.clone()), &namespace).await?;
        }
        // The measured operator may be a third-party one, and its required rights are unknown.
        create(Api::all(admin.clone()), &all_rights()).await?;
        let secret: Secret = from_json(admin_secret(&serving, &[main.url(), hung.url()]));
        create(Api::namespaced(admin.clone(), HOME), &secret).await?;
        for (name, endpoint) in [(MAIN, main.url()), (HUNG, hung.url())] {
            create(backends(&admin), &from_json(backend(name, endpoint))).await?;
        }
        Ok(Self {
            claims: Claims::watch(admin, plane.client(User::Tenant).await?),
            audit: Mutex::new(Audit::new(plane.audit_log(), User::Operator.name())),
            main,
            hung,
            store: Store::new(&serving.endpoint, REGION, &serving.key)?,
            kubeconfig: plane.kubeconfig_of(User::Operator)?,
            serving,
            plane,
        })
    }

    /// Returns the command that starts an operator here. Placeholders in braces are replaced; a
    /// command without any gets the arguments of the contract.
    pub(crate) fn launch(&self, command: &[String]) -> Vec<String> {
        launch(command, &self.kubeconfig.display().to_string())
    }

    /// Waits until the operator has reported both backends as Ready.
    pub(crate) async fn until_backends_ready(&self, patience: Duration) -> Result<()> {
        let backends = backends(&self.plane.client(User::Admin).await?);
        let ready = async {
            for name in [MAIN, HUNG] {
                await_condition(backends.clone(), name, is_ready).await.with_context(|| format!("backend {name}"))?;
            }
            anyhow::Ok(())
        };
        let seconds = patience.as_secs();
        timeout(patience, ready).await.with_context(|| format!("the backends were not Ready within {seconds} s"))?
    }

    /// Returns all counts up to now.
    pub(crate) fn mark(&self, operator: Option<&Process>) -> Result<Mark> {
        let mut audit = self.audit.lock();
        // Read first, because these grow while the rest is read.
        let (at, store, length) = (Instant::now(), self.main.passed(), audit.length()?);
        let usage = |group: Option<i32>| group.map(Usage::of_group).transpose().map(Option::unwrap_or_default);
        Ok(Mark {
            at,
            store,
            operator: usage(operator.map(Process::group).transpose()?)?,
            api_server: usage(self.plane.group(API_SERVER))?,
            etcd: usage(self.plane.group(ETCD))?,
            server: usage(self.serving.group())?,
            harness: Usage::of_this_process()?,
            // Takes the longest.
            kubernetes: audit.counts(length)?,
        })
    }

    /// Waits until the operator has sent no request during two intervals, or the time is over.
    pub(crate) async fn until_quiet(&self, patience: Duration) -> Result<()> {
        let (start, mut before, mut quiet) = (Instant::now(), 0, 0);
        while quiet < 2 && start.elapsed() < patience {
            sleep(LOOK).await;
            let kubernetes = {
                let mut audit = self.audit.lock();
                let length = audit.length()?;
                audit.counts(length)?.total()
            };
            let asked = kubernetes + self.main.passed().requests.total();
            quiet = if asked == before { quiet + 1 } else { 0 };
            before = asked;
        }
        Ok(())
    }
}

/// Replaces `{kubeconfig}`, `{namespace}` and `{gateway}` in a command. A command with none of them
/// gets the arguments of the contract.
fn launch(command: &[String], kubeconfig: &str) -> Vec<String> {
    let known = [("{kubeconfig}", kubeconfig), ("{namespace}", HOME), ("{gateway}", GATEWAY)];
    let names = |word: &String| known.iter().any(|(name, _)| word.contains(name));
    if command.iter().any(names) {
        let replaced = |word: &String| known.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value));
        return command.iter().map(replaced).collect();
    }
    let contract = ["run", "--kubeconfig", kubeconfig, "--namespace", HOME, "--gateway-endpoint", GATEWAY];
    let contract = contract.into_iter().chain(["--admin-address", "127.0.0.1:0"]).map(str::to_owned);
    command.iter().cloned().chain(contract).collect()
}

/// Applies the CustomResourceDefinitions, and waits until they are established.
async fn define(admin: &Client, file: Option<&Path>, patience: Duration) -> Result<()> {
    let (name, yaml) = match file {
        Some(file) => {
            let name = file.display().to_string();
            (name.clone(), std::fs::read_to_string(file).with_context(|| format!("--crds {name}"))?)
        }
        None => ("crds".to_owned(), stowage_operator::crds_yaml().map_err(anyhow::Error::msg)?),
    };
    let definitions = stowage_world::parse(&name, &yaml)?;
    ensure!(!definitions.is_empty(), "--crds {name} holds no document");
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(admin.clone(), &kind);
    let served: Api<CustomResourceDefinition> = Api::all(admin.clone());
    for definition in definitions {
        let definition = definition.object;
        let name = definition.name_any();
        let how = PatchParams::apply("stowage-e2e").force();
        let applied = api.patch(&name, &how, &Patch::Apply(&definition)).await;
        applied.with_context(|| format!("can't apply {name} as a definition"))?;
        let established = await_condition(served.clone(), &name, conditions::is_crd_established());
        let waited = timeout(patience, established).await;
        waited.with_context(|| format!("{name} was not served within {} s", patience.as_secs()))??;
    }
    Ok(())
}

fn all_rights() -> ClusterRoleBinding {
    from_json(json!({
        "metadata": {"name": "stowage-bench"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": User::Operator.name()}],
    }))
}

fn admin_secret(serving: &Serving, endpoints: &[&str]) -> Value {
    json!({
        "metadata": {
            "name": ADMIN,
            "labels": {"broker.stowage.io/backend-credentials": "true"},
            "annotations": {"broker.stowage.io/endpoints": endpoints.join(",")},
        },
        "stringData": {"AWS_ACCESS_KEY_ID": serving.key.id, "AWS_SECRET_ACCESS_KEY": serving.key.secret},
    })
}

fn backend(name: &str, endpoint: &str) -> Value {
    json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": name},
        "spec": {
            "endpoint": endpoint, "region": REGION,
            "adminCredentialsSecretRef": {"name": ADMIN, "namespace": HOME},
        },
    })
}

/// Returns the API of backends, untyped, as their definition may be of another version.
fn backends(client: &Client) -> Api<DynamicObject> {
    let kind = ApiResource::erase::<stowage_operator::api::S3Backend>(&());
    Api::all_with(client.clone(), &kind)
}

fn is_ready(backend: Option<&DynamicObject>) -> bool {
    let conditions = backend.and_then(|backend| backend.data["status"]["conditions"].as_array());
    conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

async fn create<K>(api: Api<K>, object: &K) -> Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize + kube::Resource,
{
    let created = api.create(&PostParams::default(), object).await;
    created.with_context(|| format!("can't make {}", object.name_any())).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_of_the_contract_gets_its_arguments() {
        let told = launch(&words("my-operator"), "/k").join(" ");
        assert!(told.starts_with("my-operator run --kubeconfig /k --namespace stowage-system --gateway-"), "{told}");
    }

    #[test]
    fn words_in_braces_are_replaced_and_nothing_is_added_then() {
        let told = launch(&words("env KUBECONFIG={kubeconfig} manager --namespace={namespace}"), "/k").join(" ");
        assert_eq!(told, "env KUBECONFIG=/k manager --namespace=stowage-system");
    }

    #[test]
    fn a_backend_is_ready_by_its_condition() {
        let backend = |conditions: Value| {
            let mut object = backend(MAIN, "http://x");
            object["status"] = json!({"conditions": conditions});
            from_json::<DynamicObject>(object)
        };
        assert!(is_ready(Some(&backend(json!([{"type": "Ready", "status": "True"}])))));
        assert!(!is_ready(Some(&backend(json!([{"type": "Ready", "status": "False"}])))));
        assert!(!is_ready(None));
    }
}
