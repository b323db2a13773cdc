//! The stage for scenes on a real API server and store, with names of this run.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, bail};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::Value;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_world::history::Facts;
use stowage_world::scenes::{Goal, Scene, Stage, Step, StoreStep, Target, TargetKind, names};
use stowage_world::{OPERATOR_NAMESPACE, apply, parse};
use tokio::time::{Instant, sleep};

/// Interval between checks of a goal.
const GLANCE: Duration = Duration::from_millis(200);

/// Plays a scene to its goal under an operator that ends on SIGTERM; returns a description of what
/// it proves.
pub(super) async fn play(environment: &Environment, name: &str, scene: &Scene) -> Result<String> {
    let setup = environment.setup(name).await?;
    let mut operator = setup.start_operator(&[]).await?;
    let mut stage = Real { setup: &setup };
    let played = async {
        stage.take(&Step::Apply(scene.further.to_owned())).await?;
        for step in (scene.script)() {
            stage.take(&step).await.with_context(|| step.to_string())?;
        }
        stage.take(&Step::Until(scene.goal)).await?;
        (scene.check)(&stage.facts().await?, &[]).map_err(Error::msg)
    };
    setup.under(&mut operator, played).await?;
    operator.terminate().await?;
    Ok(scene.about.to_owned())
}

/// An existing bucket is adopted. The store's log also shows that the bucket was left unchanged.
pub(super) async fn adoption(environment: &Environment) -> Result<String> {
    let about = play(environment, "adopt", &names::taken_over()).await?;
    environment.unchanged_by_operator(&format!("{}-adopt-a-photos", environment.prefix)).await?;
    Ok(about)
}

/// The stage in one setup. `team` is replaced by the setup's name prefix, so `team-a` is its
/// tenant, and `main` is its backend.
struct Real<'a> {
    setup: &'a Setup<'a>,
}

impl Real<'_> {
    /// Translates a scene's text to names of this cluster.
    fn here(&self, text: &str) -> String {
        let name = &self.setup.backend;
        text.replace("team", name).replace("{name: main}", &format!("{{name: {name}}}"))
    }

    /// Translates text of this cluster to names of scenes; encoded data stays as it is.
    fn told(&self, text: &str) -> String {
        text.replace(&self.setup.system, OPERATOR_NAMESPACE).replace(&self.setup.backend, "team")
    }

    /// Returns the API of a kind, with the tenant's rights if tenants create such objects.
    fn api(&self, kind: TargetKind, namespace: &str) -> Api<DynamicObject> {
        let environment = self.setup.environment;
        let client = if kind == TargetKind::Claim { &environment.tenant } else { &environment.client };
        kind.api(client.clone(), namespace)
    }

    /// Returns the API of a target, and its name there.
    fn target(&self, target: &Target) -> (Api<DynamicObject>, String) {
        let name = if target.kind == TargetKind::Backend { self.setup.backend.clone() } else { self.here(target.name) };
        (self.api(target.kind, &self.here(target.namespace)), name)
    }

    async fn at_store(&self, step: &StoreStep) -> Result<()> {
        let store = &self.setup.environment.store;
        match step {
            StoreStep::PutBucket { bucket, .. } => Ok(store.make(&self.here(bucket)).await?),
            StoreStep::PutObject { bucket, key } => Ok(store.put_object(&self.here(bucket), key).await?),
            _ => bail!("only a simulated store can do that"),
        }
    }

    /// Collects all objects and buckets of the scene, in names of scenes.
    async fn facts(&self) -> Result<Facts> {
        let Setup { environment, backend, tenant, system } = self.setup;
        let mut facts = Facts::default();
        let objects = Arc::make_mut(&mut facts.objects);
        let mut note = |kind: TargetKind, object: &DynamicObject| {
            let object: Value = serde_json::from_str(&self.told(&serde_json::to_string(object)?))?;
            let key = |field| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            objects.insert((kind.plural().to_owned(), key("namespace"), key("name")), Arc::new(object));
            anyhow::Ok(())
        };
        let kinds = [TargetKind::Claim, TargetKind::Secret, TargetKind::Event];
        for (kind, namespace) in kinds.iter().flat_map(|kind| [backend, tenant, system].map(|it| (*kind, it))) {
            for object in kind.api(environment.client.clone(), namespace).list(&ListParams::default()).await? {
                note(kind, &object)?;
            }
        }
        note(TargetKind::Namespace, &self.api(TargetKind::Namespace, "").get("kube-system").await?)?;
        for (name, mut bucket) in environment.store.buckets(backend).await? {
            for value in bucket.tags.iter_mut().flat_map(|tags| tags.values_mut()) {
                *value = self.told(value);
            }
            facts.buckets.insert((String::new(), self.told(&name)), bucket);
        }
        Ok(facts)
    }

    /// Waits until the goal is reached, or until the time limit is over.
    async fn until(&self, goal: &Goal) -> Result<()> {
        let time = self.setup.environment.patience;
        let deadline = Instant::now() + time;
        loop {
            match self.facts().await {
                Ok(facts) if (goal.holds)(&facts) => return Ok(()),
                Ok(facts) if Instant::now() >= deadline => {
                    bail!("within {} s it did not come to be that {}: {}", time.as_secs(), goal.what, facts.claims())
                }
                Err(why) if Instant::now() >= deadline => return Err(why),
                // Objects may be deleted while they are read.
                Ok(_) | Err(_) => sleep(GLANCE).await,
            }
        }
    }
}

impl Stage for Real<'_> {
    type More = Infallible;
    type Failed = Error;

    async fn take(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Apply(yaml) => {
                for document in parse("scene", &self.here(yaml))? {
                    let is_claim = document.kind()?.kind == "BucketClaim";
                    let environment = self.setup.environment;
                    let client = if is_claim { &environment.tenant } else { &environment.client };
                    apply(client, &document).await?;
                }
            }
            Step::Patch(target, patch) => {
                let (api, name) = self.target(target);
                let patch: Value = serde_json::from_str(&self.here(&patch.to_string()))?;
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            }
            Step::Delete(target) => {
                let (api, name) = self.target(target);
                api.delete(&name, &DeleteParams::default()).await?;
            }
            Step::Store(step) => self.at_store(step).await?,
            // This stage has no faults and no gateway.
            Step::Begin | Step::Tenant(..) => {}
            // The step's time is ignored: it is for a simulated world, in which calls take none.
            Step::Until(goal) | Step::Settle(_, goal) => self.until(goal).await?,
            Step::Pass(time) => sleep(*time).await,
            Step::More(never) => match *never {},
        }
        Ok(())
    }
}
