//! The operator of `../controller-runtime`, written with kube-rs: a controller on a filtered stream
//! with a store, owned objects by server-side apply, watched Secrets, a finalizer, events, and a
//! small leader election.

mod lease;
mod website;
mod websites;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::DynamicObject;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::utils::Backoff;
use kube::runtime::{Predicate as _, PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Api, Client};
use tokio::signal::unix::{SignalKind, signal};

use self::lease::Election;
use self::website::Website;
use self::websites::{Failed, Websites, bucket_claims, reconcile};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let namespace = std::env::var("OPERATOR_NAMESPACE")?;
    let identity = std::env::var("POD_NAME")?;
    let election = Election {
        leases: Api::namespaced(client.clone(), &namespace),
        name: "websites.example.org",
        identity: identity.clone(),
    };
    let mut terminate = signal(SignalKind::terminate())?;
    eprintln!("started");
    tokio::select! {
        () = election.won() => {}
        _ = terminate.recv() => return Ok(()),
    }
    eprintln!("elected");
    let reporter = Reporter { controller: websites::OWNER.to_owned(), instance: Some(identity) };
    let websites = Websites { recorder: Recorder::new(client.clone(), reporter), client, namespace };
    tokio::select! {
        () = control(websites) => {}
        () = election.lost() => return Err("the election is lost".into()),
        _ = terminate.recv() => {}
    }
    election.release().await;
    Ok(())
}

async fn control(context: Websites) {
    let client = context.client.clone();
    let (reader, writer) = reflector::store();
    let config = || watcher::Config::default().streaming_lists();
    let stream = watcher(Api::<Website>::all(client.clone()), config())
        .backoff(Pause)
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation.combine(predicates::finalizers), PredicateConfig::default());
    let claims = bucket_claims();
    let store = reader.clone();
    let of_secret = move |secret: Secret| {
        let (namespace, name) = (secret.metadata.namespace, secret.metadata.name);
        let shows = move |it: &Website| it.metadata.namespace == namespace && it.spec.secret_name == name;
        store.state_filter(shows).into_iter().map(|it| ObjectRef::from_obj(&*it))
    };
    // After a 410 the stream emits objects before the store has them, and an object that isn't in
    // the store is not reconciled. The debounce covers that time.
    let settings = controller::Config::default().concurrency(4).debounce(Duration::from_millis(100));
    Controller::for_stream(stream, reader)
        .with_config(settings)
        .trigger_backoff(Pause)
        .owns(Api::<ConfigMap>::all(client.clone()), config())
        .owns_with(Api::<DynamicObject>::all_with(client.clone(), &claims), claims.clone(), config())
        .watches(Api::<Secret>::all(client), config(), of_secret)
        .run(reconcile, try_again, Arc::new(context))
        .for_each(|outcome| async {
            if let Err(error) = outcome {
                eprintln!("{error}");
            }
        })
        .await;
}

/// The wait after an error of a watch. All watches of a controller share one backoff, and with the
/// default one each error of any of them doubles it: after a restart of the server they would take
/// minutes to reconnect.
struct Pause;

impl Iterator for Pause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(200))
    }
}

impl Backoff for Pause {
    fn reset(&mut self) {}
}

fn try_again(_: Arc<Website>, error: &Failed, _: Arc<Websites>) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_millis(200))
}
