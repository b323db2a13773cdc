//! The watches: Secrets of a simulated cluster reach the gateway, and only those that may.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_sim::Cluster;
use serde_json::json;

use super::*;

/// A cluster and a gateway that follows it in a task of its own.
struct Watched {
    stage: Stage,
    cluster: Cluster,
    client: Client,
    /// Ends with the test.
    _run: tokio::task::JoinHandle<()>,
}

impl Watched {
    async fn new() -> Self {
        let start = jiff::Timestamp::from_second(START).expect("a time in range");
        let cluster = Cluster::new(Arc::new(move || start), 1);
        let client = cluster.client("default");
        for name in [NAMESPACE, "tenant"] {
            let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a namespace");
            namespaces.create(&PostParams::default(), &namespace).await.expect("a new namespace");
        }
        let stage = Stage::before(client.clone(), super::here);
        let gateway = stage.gateway.clone();
        let run = tokio::spawn(async move { gateway.run().await });
        let watched = Self { stage, cluster, client, _run: run };
        watched.settle().await;
        watched
    }

    /// Gives the watches time; it is virtual and costs none.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn create(&self, namespace: &str, role: Option<&str>, mut secret: Secret) {
        secret.metadata.labels = role.map(|role| BTreeMap::from([(ROLE_LABEL.to_owned(), role.to_owned())]));
        self.secrets(namespace).create(&PostParams::default(), &secret).await.expect("a new Secret");
        self.settle().await;
    }

    async fn patch(&self, name: &str, patch: serde_json::Value) {
        let patch = Patch::Merge(patch);
        self.secrets(NAMESPACE).patch(name, &PatchParams::default(), &patch).await.expect("a patch");
        self.settle().await;
    }

    /// Whether a key reads its bucket; `None` = `InvalidAccessKeyId`.
    async fn reads(&self, access_key: &str) -> Option<()> {
        let client = self.stage.client(access_key);
        let result = client.get_object().bucket("photos").key("hello.txt").send().await;
        if result.is_ok() {
            return Some(());
        }
        assert_eq!(refused(result), unknown_key());
        None
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_lives_as_long_as_its_secret() {
    let watched = Watched::new().await;
    assert!(watched.stage.gateway.is_ready());
    assert_eq!(watched.reads("AKIAONE").await, None);
    watched.create(NAMESPACE, Some(CREDENTIAL_ROLE), credential_secret("AKIAONE", "photos", None)).await;
    assert_eq!(watched.reads("AKIAONE").await, Some(()));
    watched.secrets(NAMESPACE).delete("vc-akiaone", &DeleteParams::default()).await.expect("a delete");
    watched.settle().await;
    assert_eq!(watched.reads("AKIAONE").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_has_fallen_behind_hears_of_a_key_late() {
    let watched = Watched::new().await;
    watched.stage.gateway.fall_behind(Duration::from_secs(90));
    // That gives it a minute.
    watched.create(NAMESPACE, Some(CREDENTIAL_ROLE), credential_secret("AKIAONE", "photos", None)).await;
    assert_eq!(watched.reads("AKIAONE").await, None);
    watched.settle().await;
    assert_eq!(watched.reads("AKIAONE").await, Some(()));
}

#[tokio::test(start_paused = true)]
async fn a_stamp_ends_a_key_at_its_time() {
    let watched = Watched::new().await;
    watched.create(NAMESPACE, Some(CREDENTIAL_ROLE), credential_secret("AKIAONE", "photos", None)).await;
    let end = jiff::Timestamp::from_second(START + 300).expect("a time in range").to_string();
    watched.patch("vc-akiaone", json!({"metadata": {"annotations": {EXPIRES_AT: end}}})).await;
    assert_eq!(watched.reads("AKIAONE").await, Some(()));
    watched.stage.seconds.store(START + 300, Ordering::Relaxed);
    assert_eq!(watched.reads("AKIAONE").await, None);
}

// covers: 2.labels.noProof
#[tokio::test(start_paused = true)]
async fn only_internal_secrets_of_the_operator_namespace_count() {
    let watched = Watched::new().await;
    let forged = || credential_secret("AKIAONE", "photos", None);
    watched.create("tenant", Some(CREDENTIAL_ROLE), forged()).await;
    watched.create(NAMESPACE, Some("consumer-secret"), forged()).await;
    watched.create(NAMESPACE, None, credential_secret("AKIATWO", "photos", None)).await;
    assert_eq!(watched.reads("AKIAONE").await, None);
    assert_eq!(watched.reads("AKIATWO").await, None);
    watched.patch("vc-akiaone", json!({"metadata": {"labels": {ROLE_LABEL: CREDENTIAL_ROLE}}})).await;
    assert_eq!(watched.reads("AKIAONE").await, Some(()));
    watched.patch("vc-akiaone", json!({"metadata": {"labels": {ROLE_LABEL: null}}})).await;
    assert_eq!(watched.reads("AKIAONE").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lost_history_is_made_up_for_by_a_new_list() {
    let watched = Watched::new().await;
    watched.create(NAMESPACE, Some(CREDENTIAL_ROLE), credential_secret("AKIAONE", "photos", None)).await;
    watched.cluster.compact();
    watched.create(NAMESPACE, Some(CREDENTIAL_ROLE), credential_secret("AKIATWO", "photos", None)).await;
    // Longer than one watch lasts, so that all of them have had to begin anew.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(watched.reads("AKIAONE").await, Some(()));
    assert_eq!(watched.reads("AKIATWO").await, Some(()));
}

#[tokio::test(start_paused = true)]
async fn public_access_lasts_as_long_as_its_binding() {
    let watched = Watched::new().await;
    let status = async || watched.stage.anonymous("GET", "/photos/hello.txt").await.0;
    assert_eq!(status().await, 403);
    watched.create(NAMESPACE, Some(BINDING_ROLE), binding_secret("photos")).await;
    assert_eq!(status().await, 200);
    watched.secrets(NAMESPACE).delete("ab-uid-1", &DeleteParams::default()).await.expect("a delete");
    watched.settle().await;
    assert_eq!(status().await, 403);
}
