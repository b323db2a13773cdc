//! Tests that a cluster gives the same answers whether it stores objects as text or as JSON trees.

use kube_sim::Cluster;
use rstest::rstest;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::front::{front, send};
use super::{definition, empty_cluster, parse};
use crate::Front;

const THINGS: &str = "/apis/example.io/v1/namespaces/default/things";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const JSON: (&str, &str) = ("content-type", "application/json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");
const METADATA: (&str, &str) = ("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
const TABLE: (&str, &str) = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");

/// Deterministic random numbers: hashes of a seed and a counter.
struct Draws(u64, u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.1 += 1;
        let hash: [u8; 32] = Sha256::digest([self.0.to_be_bytes(), self.1.to_be_bytes()].concat()).into();
        u64::from_be_bytes(hash[..8].try_into().expect("eight bytes")) % most
    }
}

/// A request, or a step of the cluster's controllers.
enum Act {
    Ask(&'static str, String, Vec<(&'static str, &'static str)>, String),
    Collect,
    Expire,
}

fn act(draws: &mut Draws, uids: &[String]) -> Act {
    let name = format!("o{}", draws.below(6));
    let object = |draws: &mut Draws, kind: &str| {
        let owner = uids.get(usize::try_from(draws.below(8)).unwrap_or_default());
        let owners: Vec<_> = owner
            .iter()
            .map(|uid| json!({"apiVersion": "example.io/v1", "kind": "Thing", "name": "o1", "uid": uid, "blockOwnerDeletion": true}))
            .collect();
        let finalizers: &[&str] = if draws.below(4) == 0 { &["example.io/hold"] } else { &[] };
        let labels = json!({"app": format!("a{}", draws.below(3))});
        let metadata = json!({"name": name, "ownerReferences": owners, "finalizers": finalizers, "labels": labels});
        match kind {
            "Thing" => {
                json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": metadata, "spec": {"owner": "ann"}})
            }
            _ => json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"k": "v"}}),
        }
    };
    let (kind, path) = if draws.below(2) == 0 { ("Thing", THINGS) } else { ("Secret", SECRETS) };
    let ask = |verb, path: String, headers: &[_], body: String| Act::Ask(verb, path, headers.to_vec(), body);
    match draws.below(14) {
        0..=2 => ask("POST", path.to_owned(), &[JSON], object(draws, kind).to_string()),
        3 => {
            let patch = json!({"metadata": {"labels": {"app": format!("a{}", draws.below(3))}}});
            ask("PATCH", format!("{path}/{name}"), &[MERGE], patch.to_string())
        }
        4 => ask("PATCH", format!("{path}/{name}"), &[MERGE], json!({"metadata": {"finalizers": null}}).to_string()),
        5 => {
            let policy = ["Background", "Foreground", "Orphan"][usize::try_from(draws.below(3)).unwrap_or_default()];
            ask("DELETE", format!("{path}/{name}"), &[JSON], json!({"propagationPolicy": policy}).to_string())
        }
        6 => ask("GET", format!("{path}/{name}"), &[], String::new()),
        7 => ask("GET", format!("{path}?labelSelector=app%21%3Da1&limit=2"), &[], String::new()),
        8 => ask("GET", format!("{path}?fieldSelector=metadata.name%3D{name}"), &[], String::new()),
        9 => ask("GET", path.to_owned(), &[METADATA], String::new()),
        10 => ask("GET", path.to_owned(), &[TABLE], String::new()),
        11 => {
            let version = 1 + draws.below(40);
            let query = format!("watch=1&timeoutSeconds=1&labelSelector=app%3Da1&resourceVersion={version}");
            ask("GET", format!("{path}?{query}"), &[], String::new())
        }
        12 => Act::Collect,
        _ => Act::Expire,
    }
}

/// Carries out an act and describes the result.
async fn carry_out((cluster, front): &(Cluster, Front), act: &Act) -> String {
    match act {
        Act::Ask(verb, path, headers, body) => {
            let answer = send(front, verb, path, headers, body.as_bytes()).await;
            format!("{verb} {path}: {} {}", answer.code, String::from_utf8_lossy(&answer.text))
        }
        Act::Collect => format!("{} collected", cluster.collect_garbage()),
        Act::Expire => format!("{} expired", cluster.expire_events(jiff::SignedDuration::from_secs(1))),
    }
}

fn cluster() -> (Cluster, Front) {
    let cluster = empty_cluster();
    cluster.install_crd(&parse(definition())).expect("the definition is sound");
    let front = front(&cluster);
    (cluster, front)
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_compact_cluster_answers_as_any_other(#[values(0, 1, 4)] most: usize, #[values(1, 2, 3, 4)] seed: u64) {
    let (plain, compact) = (cluster(), cluster());
    compact.0.keep_compact(most);
    let mut draws = Draws(seed, 0);
    for number in 0..400 {
        let things = plain.0.objects().into_iter().filter(|object| object.plural == "things");
        let uids: Vec<String> =
            things.filter_map(|it| Some(it.object["metadata"]["uid"].as_str()?.to_owned())).collect();
        let act = act(&mut draws, &uids);
        assert_eq!(carry_out(&plain, &act).await, carry_out(&compact, &act).await, "act {number}");
    }
    assert_eq!(plain.0.objects(), compact.0.objects());
    for plural in ["things", "secrets"] {
        assert_eq!(plain.0.past_objects(plural), compact.0.past_objects(plural));
    }
}
