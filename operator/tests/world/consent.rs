//! The owner of an admin Secret decides its use, not the users who may edit a backend (spec §1).

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use rstest::rstest;
use serde_json::{Value, json};
use stowage_operator::api::{Backend, Endpoint, Unlabelled, wire};
use stowage_operator::upstream::AccessError;
use stowage_world::determinism::run_seeded;
use stowage_world::{ADMIN_ACCOUNT, BackendStore, OPERATOR_NAMESPACE, Options, World};

use crate::probes::{Noting, backend, clients_that};
use crate::support::{Stage, claim, claim_with, condition, object, ready, secrets};

const MINUTE: u64 = 60;
/// Endpoint to which an attacker who may edit a backend wants keys sent.
const THIEF: &str = "http://thief.example:9000";

/// Runs `test` in a world with a store at [`THIEF`], which accepts the key `hunter2` from an
/// unrelated Secret.
fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    let keys = Some(("hunter2".to_owned(), "hunter2".to_owned()));
    let endpoint = Endpoint::parse(THIEF).expect("a URL");
    let thief = BackendStore { name: "thief".to_owned(), endpoint, keys, ..BackendStore::main() };
    let options = Options { backends: vec![BackendStore::main(), thief], history: true, ..Options::default() };
    Stage::run_with(options, test)
}

/// Applies a Secret in the operator's namespace that is not for stores.
async fn put_secret(stage: &Stage, name: &str, metadata: Value) {
    let mut metadata = metadata;
    metadata["name"] = json!(name);
    metadata["namespace"] = json!(OPERATOR_NAMESPACE);
    let data = json!({"password": "hunter2"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
    stage.apply(&secret.to_string()).await;
}

/// Applies a backend at [`THIEF`] that uses a Secret's password as access key id and as secret key.
async fn put_backend(stage: &Stage, secret: &str) {
    let reference = json!({
        "name": secret, "namespace": OPERATOR_NAMESPACE, "accessKeyField": "password", "secretKeyField": "password",
    });
    let backend = json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": "thief"},
        "spec": {"endpoint": THIEF, "adminCredentialsSecretRef": reference},
    });
    stage.apply(&backend.to_string()).await;
}

fn backend_ready(world: &World, name: &str) -> String {
    condition(&object(world, "s3backends", "", name), "Ready")
}

fn message(world: &World, name: &str) -> String {
    let backend = object(world, "s3backends", "", name);
    backend["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned()
}

/// Returns the number of calls to the store at this host in the history.
fn calls_at(world: &World, host: &str) -> usize {
    world.history().calls().filter(|(_, call)| call.host == host).count()
}

// covers: 1.backend.credentials.optIn
#[test]
fn a_secret_whose_owner_has_not_opted_in_is_not_sent_anywhere() {
    run(async |stage| {
        put_secret(&stage, "database", json!({})).await;
        put_backend(&stage, "database").await;
        stage.until("the backend was looked at", |world| !backend_ready(world, "thief").is_empty()).await;
        stage.world.pass(Duration::from_secs(30 * MINUTE)).await;
        assert_eq!(backend_ready(&stage.world, "thief"), "CredentialsInvalid");
        assert_eq!(calls_at(&stage.world, "thief.example:9000"), 0);
        let message = message(&stage.world, "thief");
        for line in [
            "broker.stowage.io/backend-credentials: \"true\"",
            "broker.stowage.io/endpoints: \"http://thief.example:9000\"",
        ] {
            assert!(message.lines().any(|told| told.trim() == line), "{line:?} is to be copied from: {message}");
        }
    });
}

// covers: 1.backend.credentials.endpoints
#[test]
fn a_backend_that_is_edited_to_point_elsewhere_takes_no_key_with_it() {
    run(async |stage| {
        stage.world.store_at(&Endpoint::parse(THIEF).unwrap()).unwrap().add_account(
            ADMIN_ACCOUNT,
            "STOWAGEADMIN",
            "stowage-admin-secret-key-for-demonstration",
        );
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.patch("s3backends", "", "main", json!({"spec": {"endpoint": THIEF}})).await;
        stage.world.pass(Duration::from_secs(30 * MINUTE)).await;
        assert_eq!(backend_ready(&stage.world, "main"), "CredentialsInvalid");
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BackendNotReady");
        assert_eq!(calls_at(&stage.world, "thief.example:9000"), 0);
        stage.patch("s3backends", "", "main", json!({"spec": {"endpoint": "http://S3.example:9000/"}})).await;
        stage.soon("it is Ready again", MINUTE, |world| ready(world, "team-a", "photos") == "Bound").await;
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").len(), 1, "by the same key");
    });
}

/// Ways in which the owner of the admin Secret revokes its use.
// covers: 1.backend.credentials.withdrawn, 1.backend.credentials.optIn
// covers: 1.backend.reason.CredentialsInvalid
#[rstest]
#[case::label(json!({"metadata": {"labels": {"broker.stowage.io/backend-credentials": null}}}))]
#[case::answer(json!({"metadata": {"labels": {"broker.stowage.io/backend-credentials": "false"}}}))]
#[case::endpoint(json!({"metadata": {"annotations": {"broker.stowage.io/endpoints": "http://other.example"}}}))]
#[case::list(json!({"metadata": {"annotations": {"broker.stowage.io/endpoints": null}}}))]
#[case::secret(Value::Null)]
fn what_is_taken_back_is_not_used_any_more(#[case] change: Value) {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "deletionPolicy: Delete")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        match &change {
            Value::Null => stage.delete("secrets", OPERATOR_NAMESPACE, "s3-admin").await,
            change => stage.patch("secrets", OPERATOR_NAMESPACE, "s3-admin", change.clone()).await,
        }
        // A deleted Secret may be about to be replaced.
        let seconds = if change.is_null() { 10 } else { 5 };
        stage.soon("it is told", seconds, |world| backend_ready(world, "main") == "CredentialsInvalid").await;
        let before = stage.world.effects.trace().effects();
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.world.pass(Duration::from_secs(30 * MINUTE)).await;
        assert_eq!(stage.world.effects.trace().counters_after(before).s3_calls, 0, "{}", stage.trace());
        assert!(stage.world.store.bucket("team-a-photos").is_some());
        stage.apply(crate::support::BASE).await;
        stage.until_gone("team-a", "photos").await;
        assert!(stage.world.store.bucket("team-a-photos").is_none(), "it goes on once it may");
    });
}

// covers: 3.5.log
#[test]
fn the_log_says_once_why_a_backend_is_not_ready() {
    Stage::run("", async |stage| {
        stage.patch("s3backends", "", "main", json!({"spec": {"endpoint": "http://nowhere.example"}})).await;
        stage.soon("it is unreachable", MINUTE, |world| backend_ready(world, "main") == "EndpointUnreachable").await;
        stage.world.pass(Duration::from_secs(30 * MINUTE)).await;
        let log = stage.secrecy.log();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("the backend is not Ready")).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let why =
            r#"reason="EndpointUnreachable" why="ListBuckets: the store gave no answer: the connection is refused""#;
        assert!(lines[0].contains(why), "{}", lines[0]);
        stage.patch("s3backends", "", "main", json!({"spec": {"endpoint": "http://s3.example:9000"}})).await;
        stage.soon("it is Ready", MINUTE, |world| backend_ready(world, "main") == "EndpointReachable").await;
        stage.world.pass(Duration::from_secs(5)).await;
        assert!(stage.secrecy.log().contains("the backend is Ready"));
    });
}

const HERE: &str = "http://s3.example:9000";
const THERE: &str = "http://there.example";

/// A Secret, with the fields that its owner and a backend set.
#[derive(Clone, Copy, Debug)]
struct Asked {
    name: &'static str,
    label: Option<&'static str>,
    list: Option<&'static str>,
    /// The backend's endpoint, to which the Secret's values would be sent.
    endpoint: &'static str,
    field: &'static str,
}

impl Asked {
    /// Returns all relevant combinations.
    fn all() -> Vec<Self> {
        let both = "http://there.example http://s3.example:9000";
        let mut all = Vec::new();
        for name in ["admin", "vc-akiasioprpitjzkgfnyl"] {
            for label in [None, Some("true"), Some("false"), Some("")] {
                for list in [None, Some(""), Some(HERE), Some(THERE), Some(both), Some("*"), Some("s3.example:9000")] {
                    for (endpoint, field) in [(HERE, "id"), (HERE, "password"), (THERE, "id"), (THERE, "password")] {
                        all.push(Self { name, label, list, endpoint, field });
                    }
                }
            }
        }
        all
    }

    /// Returns true if the owner allows sending the Secret's values to that endpoint.
    fn is_let(self, unlabelled: Unlabelled) -> bool {
        let named = self.list.is_some_and(|list| list.split(' ').any(|endpoint| endpoint == self.endpoint));
        let says_nothing = self.label.is_none() && self.list.is_none();
        let let_be = (self.label == Some("true") && named) || (says_nothing && unlabelled == Unlabelled::Accepted);
        let_be && self.name == "admin"
    }

    fn secret(self) -> String {
        let one = |key: &str, value: Option<&str>| value.map_or_else(|| json!({}), |value| json!({key: value}));
        let (labels, annotations) = (one(wire::BACKEND_CREDENTIALS, self.label), one(wire::ENDPOINTS, self.list));
        let metadata =
            json!({"name": self.name, "namespace": OPERATOR_NAMESPACE, "labels": labels, "annotations": annotations});
        let data = json!({"id": "STOWAGEADMIN", "password": "hunter2"});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}).to_string()
    }

    fn backend(self) -> Backend {
        let reference = json!({
            "name": self.name, "namespace": OPERATOR_NAMESPACE,
            "accessKeyField": self.field, "secretKeyField": "password",
        });
        let spec = json!({"endpoint": self.endpoint, "adminCredentialsSecretRef": reference});
        Backend { name: "asked".to_owned(), ..backend(spec) }
    }
}

/// The property that the opt-in exists for.
// covers: 1.backend.credentials.optIn, 1.backend.credentials.endpoints
// covers: 1.backend.credentials.internal, 1.backend.credentials.unlabelled
#[rstest]
#[case(Unlabelled::Refused)]
#[case(Unlabelled::Accepted)]
fn no_value_of_a_secret_is_sent_to_an_endpoint_that_its_owner_did_not_name(#[case] unlabelled: Unlabelled) {
    for asked in Asked::all() {
        let store = Noting::answering(StatusCode::NO_CONTENT);
        let outcome = run_seeded(1, || async {
            let (world, upstreams) = clients_that(&store, unlabelled).await;
            world.apply(&world.kube(), &asked.secret()).await;
            // Another backend with consent exists at the same time. Its client must not be used.
            let other = upstreams.get(&backend(json!({}))).await.expect("a client");
            let _ = other.probe().await;
            let upstream = upstreams.get(&asked.backend()).await;
            if let Ok(upstream) = &upstream {
                let _ = upstream.probe().await;
            }
            upstream.map(drop)
        });
        let requests = store.requests.lock().unwrap();
        let (uri, signature) = requests.last().expect("the other backend's, at least");
        let is_sent = requests.len() > 1;
        assert_eq!((is_sent, outcome.is_ok()), (asked.is_let(unlabelled), is_sent), "{asked:?}: {outcome:?}");
        let value = if asked.field == "id" { "STOWAGEADMIN" } else { "hunter2" };
        assert!(!is_sent || (uri.starts_with(asked.endpoint) && signature.contains(&format!("={value}/"))), "{uri}");
    }
}

// covers: 1.backend.credentials.internal, 1.backend.credentials.caNamespace
#[test]
fn a_secret_of_the_operators_own_is_no_ca_bundle_either() {
    run_seeded(1, || async {
        let (_world, upstreams) = clients_that(&Noting::default(), Unlabelled::Refused).await;
        let reference = json!({"name": "br-1", "namespace": OPERATOR_NAMESPACE});
        let refused = upstreams.get(&backend(json!({"tls": {"caBundleSecretRef": reference}}))).await.map(drop);
        assert_eq!(refused, Err(AccessError::Internal(OPERATOR_NAMESPACE.to_owned(), "br-1".to_owned())));
    });
}

// covers: 1.backend.credentials.withdrawn
#[test]
fn a_client_in_hand_is_not_given_out_once_its_secret_has_changed() {
    run_seeded(1, || async {
        let (world, upstreams) = clients_that(&Noting::default(), Unlabelled::Refused).await;
        let backend = backend(json!({}));
        let first = upstreams.get(&backend).await.expect("a client");
        upstreams.doubt("main");
        let again = upstreams.get(&backend).await.expect("the Secret is the same");
        assert!(Arc::ptr_eq(&first, &again));
        world
            .cluster
            .change("secrets", OPERATOR_NAMESPACE, "s3-admin", |secret| secret["metadata"]["labels"] = Value::Null);
        upstreams.doubt("main");
        let refused = upstreams.get(&backend).await.map(drop);
        assert!(matches!(refused, Err(AccessError::NotOptedIn(..))), "{refused:?}");
    });
}
