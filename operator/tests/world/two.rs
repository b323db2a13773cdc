//! Two operators at once (spec §3.6): no safety property is violated, both come to rest, and after
//! one has stopped and one sweep the result is that of a single operator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use kube_sim::StoredObject;
use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::determinism::run_seeded;
use stowage_world::effects::Plan;
use stowage_world::{ADMIN_ACCOUNT, OPERATOR_NAMESPACE, Operator, Options, World};

use crate::support::{BASE, Stage, claim_with, decoded, object, ready, secrets, tenant_can_work};

const CLAIMS: u32 = 20;

/// Claims that compete for one bucket. All claims of a group stay, or all are deleted, so the
/// winner doesn't matter.
const RIVALS: [(&str, [u32; 3]); 2] = [("stays", [1, 7, 13]), ("goes", [2, 8, 14])];

/// A claim whose bucket already exists, and a claim whose consumer Secret's name is taken.
const FOREIGN_BUCKET: u32 = 5;
const FOREIGN_SECRET: u32 = 11;

const SETTLED: Duration = Duration::from_secs(1200);
const SWEEP: Duration = Duration::from_secs(800);

fn name(number: u32) -> String {
    format!("claim-{number}")
}

fn rivals_of(number: u32) -> Option<&'static str> {
    RIVALS.iter().find(|(_, numbers)| numbers.contains(&number)).map(|(bucket, _)| *bucket)
}

fn is_deleted(number: u32) -> bool {
    number.is_multiple_of(2)
}

fn is_renamed(number: u32) -> bool {
    number % 5 == 3 && rivals_of(number).is_none()
}

/// Observed facts about keys that must never change.
#[derive(Default)]
struct Watcher {
    secrets: BTreeMap<String, String>,
    expiries: BTreeMap<String, String>,
    /// The last checked resourceVersion.
    checked: u64,
}

impl Watcher {
    /// Checks the invariants that are true at every moment.
    fn check(&mut self, world: &World) {
        let objects = world.cluster.objects();
        let secrets: Vec<&StoredObject> = objects.iter().filter(|o| o.plural == "secrets").collect();
        let keys = self.check_keys(&secrets);
        let live = |owner: &Value| {
            let named = |o: &&StoredObject| o.plural == "bucketclaims" && owner["name"] == o.name;
            let claim = objects.iter().find(named).map(|o| &o.object["metadata"]);
            claim.is_some_and(|claim| claim["uid"] == owner["uid"] && claim["deletionTimestamp"].is_null())
        };
        self.check_published(&secrets, &keys, live);
        check_records(&secrets);
        let theirs =
            secrets.iter().find(|o| o.name == format!("{}-s3", name(FOREIGN_SECRET))).map(|o| &o.object["data"]);
        assert_eq!(theirs, Some(&json!({"theirs": "eA=="})));
        let foreign = world.store.bucket(&format!("team-a-{}", name(FOREIGN_BUCKET)));
        assert_eq!(foreign.map(|bucket| (bucket.tags, bucket.objects)), Some((None, 1)));
    }

    /// Asserts that an id never has two secrets, and that its expiry is never moved earlier or
    /// removed. Returns the keys by id.
    fn check_keys(&mut self, secrets: &[&StoredObject]) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut keys = BTreeMap::new();
        let mut claims: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for secret in secrets.iter().filter(|secret| has_role(secret, "virtual-credential")) {
            let key = decoded(&secret.object);
            let (id, text) = (key["access_key_id"].clone(), key["secret_access_key"].clone());
            self.one_secret(&id, &text);
            let stamp = &secret.object["metadata"]["annotations"]["broker.stowage.io/expires-at"];
            let stamp = stamp.as_str().unwrap_or_default();
            let before = self.expiries.insert(id.clone(), stamp.to_owned()).unwrap_or_default();
            assert!(before.as_str() <= stamp, "{id}: {before} became {stamp}");
            claims.entry(key["bucket_name"].clone()).or_default().insert(key["claim_uid"].clone());
            keys.insert(id, key);
        }
        assert!(claims.values().all(|claims| claims.len() == 1), "two claims have keys for one bucket: {claims:?}");
        keys
    }

    fn one_secret(&mut self, id: &str, secret: &str) {
        let first = self.secrets.entry(id.to_owned()).or_insert_with(|| secret.to_owned());
        assert_eq!(first, secret, "{id} has two secrets");
    }

    /// Asserts that the key in each consumer Secret works, unless its claim is being deleted.
    fn check_published(
        &mut self,
        secrets: &[&StoredObject],
        keys: &BTreeMap<String, BTreeMap<String, String>>,
        live: impl Fn(&Value) -> bool,
    ) {
        for secret in secrets.iter().filter(|secret| has_role(secret, "consumer-secret")) {
            let published = decoded(&secret.object);
            self.one_secret(&published["AWS_ACCESS_KEY_ID"], &published["AWS_SECRET_ACCESS_KEY"]);
            if live(&secret.object["metadata"]["ownerReferences"][0]) {
                let key = keys.get(&published["AWS_ACCESS_KEY_ID"]).map(|key| &key["bucket_name"]);
                assert_eq!(key, Some(&published["BUCKET_NAME"]), "{} holds a key that nobody knows", secret.name);
            }
        }
    }
}

fn has_role(secret: &StoredObject, role: &str) -> bool {
    secret.object["metadata"]["labels"]["broker.stowage.io/role"] == role
}

fn check_records(secrets: &[&StoredObject]) {
    let records = secrets.iter().filter(|secret| has_role(secret, "bucket-record"));
    let buckets: Vec<String> = records.map(|record| decoded(&record.object)["bucket_name"].clone()).collect();
    let distinct: BTreeSet<&String> = buckets.iter().collect();
    assert_eq!(distinct.len(), buckets.len(), "two records for one bucket: {buckets:?}");
}

/// Lets time pass in small steps, and checks after each.
async fn pass(stage: &Stage, watcher: &mut Watcher, time: Duration) {
    let end = tokio::time::Instant::now() + time;
    while tokio::time::Instant::now() < end {
        stage.world.pass(Duration::from_millis(200)).await;
        let version = stage.world.cluster.resource_version();
        if std::mem::replace(&mut watcher.checked, version) != version {
            stage.world.run_cluster_controllers();
            watcher.check(&stage.world);
        }
    }
}

/// Performs the users' actions of a run.
async fn act(stage: &Stage, watcher: &mut Watcher, random: &mut fastrand::Rng) {
    for number in 0..CLAIMS {
        let spec = rivals_of(number).map(|bucket| format!("bucketName: {bucket}")).unwrap_or_default();
        stage.apply(&claim_with("team-a", &name(number), &spec)).await;
        stage.world.pass(Duration::from_millis(random.u64(0..20))).await;
    }
    pass(stage, watcher, Duration::from_secs(10)).await;
    pass(stage, watcher, Duration::from_secs(100)).await;
    for number in 0..CLAIMS {
        let annotations = json!({"broker.stowage.io/rotate": "now"});
        stage.patch("bucketclaims", "team-a", &name(number), json!({"metadata": {"annotations": annotations}})).await;
        if is_renamed(number) {
            let to = json!({"writeConnectionSecretToRef": {"name": format!("renamed-{number}")}});
            stage.patch("bucketclaims", "team-a", &name(number), json!({"spec": to})).await;
        }
        stage.world.pass(Duration::from_millis(random.u64(0..20))).await;
    }
    pass(stage, watcher, Duration::from_secs(random.u64(0..60))).await;
    for number in (0..CLAIMS).filter(|number| is_deleted(*number)) {
        stage.delete("bucketclaims", "team-a", &name(number)).await;
        stage.world.pass(Duration::from_millis(random.u64(0..20))).await;
    }
    pass(stage, watcher, Duration::from_secs(30)).await;
    pass(stage, watcher, SETTLED).await;
}

/// Returns the final state in a form that two runs can compare. Competing claims are listed under
/// their bucket, without the winner.
fn canonical(world: &World) -> BTreeMap<String, Vec<Value>> {
    let mut state: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for number in 0..CLAIMS {
        let claim = object(world, "bucketclaims", "team-a", &name(number));
        let group = rivals_of(number).map_or_else(|| name(number), str::to_owned);
        state.entry(group).or_default().push(canonical_claim(world, &claim));
    }
    state.values_mut().for_each(|group| group.sort_by_key(ToString::to_string));
    for (bucket, snapshot) in world.store.buckets() {
        let tags = snapshot.tags.unwrap_or_default();
        let contended = RIVALS.iter().any(|(name, _)| *name == bucket);
        let tag = tags.get("broker.stowage.io/claim").filter(|_| !contended);
        state.insert(format!("bucket {bucket}"), vec![json!({"tags": tags.len(), "claim": tag})]);
    }
    state
}

fn canonical_claim(world: &World, claim: &Value) -> Value {
    if claim.is_null() {
        return Value::Null;
    }
    let uid = &claim["metadata"]["uid"];
    let of_role = |namespace: &str, role: &str| {
        let of_claim = |secret: &&String| {
            object(world, "secrets", namespace, secret)["metadata"]["labels"]["broker.stowage.io/claim-uid"] == *uid
        };
        secrets(world, namespace, role).iter().filter(of_claim).count()
    };
    let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let words = |condition: &Value| json!([condition["type"], condition["status"], condition["reason"]]);
    let consumers = of_role("team-a", "consumer-secret");
    let credentials = of_role(OPERATOR_NAMESPACE, "virtual-credential");
    json!({
        "phase": claim["status"]["phase"],
        "origin": claim["status"]["bucketOrigin"],
        "request": claim["status"]["handledRotateRequest"],
        "finalizers": claim["metadata"]["finalizers"],
        "conditions": conditions.iter().map(words).collect::<Vec<Value>>(),
        "records": of_role(OPERATOR_NAMESPACE, "bucket-record"),
        // A generation that the two operators skipped is deleted when its successor is published,
        // not before.
        "credentials": if consumers == 0 { credentials.min(1) } else { credentials },
        "bindings": of_role(OPERATOR_NAMESPACE, "anonymous-binding"),
        "consumer": consumers,
    })
}

/// Returns internal Secrets of deleted claims, and keys with an expiry.
fn left_over(world: &World) -> Vec<String> {
    let objects = world.cluster.objects();
    let claims = objects.iter().filter(|o| o.plural == "bucketclaims");
    let live: BTreeSet<String> = claims.map(|o| o.object["metadata"]["uid"].to_string()).collect();
    let internal = objects.iter().filter(|o| o.plural == "secrets" && o.namespace == OPERATOR_NAMESPACE);
    let dead = |secret: &Value| {
        let metadata = &secret["metadata"];
        !live.contains(&metadata["labels"]["broker.stowage.io/claim-uid"].to_string())
            || !metadata["annotations"]["broker.stowage.io/expires-at"].is_null()
    };
    internal.filter(|o| o.name != "s3-admin" && dead(&o.object)).map(|o| o.name.clone()).collect()
}

async fn stage(seed: u64, plan: Plan) -> Stage {
    let mut world = World::new(Options { seed, plan, ..Options::default() });
    world.apply(&world.kube(), BASE).await;
    world.store.put_bucket(ADMIN_ACCOUNT, &format!("team-a-{}", name(FOREIGN_BUCKET)));
    world.store.put_object(&format!("team-a-{}", name(FOREIGN_BUCKET)), "theirs", "x");
    let foreign = format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: {}-s3, namespace: team-a}}, stringData: {{theirs: x}}}}",
        name(FOREIGN_SECRET)
    );
    world.apply(&world.kube(), &foreign).await;
    let operator = world.start_operator();
    Stage::of(world, operator)
}

/// The final state of the run with one operator and no faults, for comparison.
static ALONE: LazyLock<BTreeMap<String, Vec<Value>>> = LazyLock::new(alone);

fn alone() -> BTreeMap<String, Vec<Value>> {
    run_seeded(1, || async {
        let stage = stage(1, Plan::default()).await;
        let mut watcher = Watcher::default();
        act(&stage, &mut watcher, &mut fastrand::Rng::with_seed(1)).await;
        stage.world.pass(SWEEP).await;
        assert_eq!(left_over(&stage.world), Vec::<String>::new());
        canonical(&stage.world)
    })
}

/// Returns one relevant fault, and many slow calls, so that the two operators don't run in
/// lockstep.
fn plan(random: &mut fastrand::Rng) -> Plan {
    let faults = [
        format!("#{} crash(before)", random.u32(1..900)),
        format!("#{} crash(after-effect)", random.u32(1..900)),
        format!("#{} crash(after-answer)", random.u32(1..900)),
        format!("#{} lost-answer", random.u32(1..900)),
        format!("#{} hang", random.u32(1..900)),
        format!("kube:create secrets@{} lost-answer", random.u32(1..60)),
        format!("kube:patch secrets@{} server-error(applied)", random.u32(1..80)),
        format!("kube:delete secrets@{} conflict", random.u32(1..40)),
        format!("s3:CreateBucket@{} lost-answer", random.u32(1..20)),
        format!("s3:PutBucketTagging@{} internal-error", random.u32(1..20)),
    ];
    let mut text = random.choice(faults).unwrap_or_default();
    for _ in 0..random.u32(0..60) {
        text.push_str(&format!("; #{} slow({})", random.u32(1..1200), random.u32(1..3000)));
    }
    text.parse().expect("the plan is well-formed")
}

struct Outcome {
    crashes: u32,
    end: BTreeMap<String, Vec<Value>>,
}

fn together(seed: u64) -> Outcome {
    let mut random = fastrand::Rng::with_seed(seed);
    let plan = plan(&mut random);
    println!("seed {seed}: {plan}");
    run_seeded(seed, || async move {
        let mut stage = stage(seed, plan).await;
        stage.world.pass(Duration::from_millis(random.u64(0..2000))).await;
        let second = stage.world.start_operator();
        let mut watcher = Watcher::default();
        act(&stage, &mut watcher, &mut random).await;
        rest(&stage).await;
        let (stays, goes) = if random.bool() { (&stage.operator, &second) } else { (&second, &stage.operator) };
        finish(&stage, &mut watcher, stays, goes).await
    })
}

/// Asserts that both operators are at rest: neither finds anything to do, or to undo of the other.
async fn rest(stage: &Stage) {
    let before = stage.world.effects.trace().effects();
    stage.world.pass(Duration::from_secs(3600)).await;
    let writes = stage.world.effects.trace().counters_after(before).kubernetes_writes;
    let trace = stage.world.effects.trace();
    let lines: Vec<String> = trace.lines().iter().skip(before as usize).map(|line| format!("\n{line}")).collect();
    assert_eq!(writes, 0, "{}", lines.concat());
}

async fn finish(stage: &Stage, watcher: &mut Watcher, stays: &Operator, goes: &Operator) -> Outcome {
    goes.stop();
    pass(stage, watcher, SWEEP).await;
    assert_eq!(left_over(&stage.world), Vec::<String>::new());
    for number in (0..CLAIMS).filter(|number| ready(&stage.world, "team-a", &name(*number)) == "Bound") {
        let claim = object(&stage.world, "bucketclaims", "team-a", &name(number));
        tenant_can_work(&stage.world, "team-a", claim["status"]["boundSecretName"].as_str().expect("bound")).await;
    }
    Outcome { crashes: stays.crashes() + goes.crashes(), end: canonical(&stage.world) }
}

// covers: 3.6.twoOperators
#[rstest]
fn two_operators_break_nothing_and_end_as_one(#[values(0, 1, 2, 3)] part: u64) {
    let alone = &*ALONE;
    let mut crashes = 0;
    for seed in (1..=6).map(|number| part * 6 + number) {
        let outcome = together(seed);
        crashes += outcome.crashes;
        for (what, expected) in alone {
            assert_eq!(outcome.end.get(what), Some(expected), "seed {seed}: {what}");
        }
        assert_eq!(outcome.end.len(), alone.len(), "seed {seed}");
    }
    println!("6 seeds, {crashes} crashes");
}

/// The final state contains the expected variety, so the comparison is meaningful.
#[test]
fn the_end_that_is_compared_with_has_all_of_it() {
    let alone = &*ALONE;
    let ready = |claim: &Value| {
        let conditions = claim["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().find(|c| c[0] == "Ready").map(|c| c[2].as_str().unwrap_or_default().to_owned())
    };
    let reasons: BTreeMap<&String, Vec<Option<String>>> =
        alone.iter().map(|(what, claims)| (what, claims.iter().map(ready).collect())).collect();
    let some = |reason: &str| Some(reason.to_owned());
    assert_eq!(reasons[&name(9)], [some("Bound")]);
    assert_eq!(reasons[&name(FOREIGN_BUCKET)], [some("BucketExists")]);
    assert_eq!(reasons[&name(FOREIGN_SECRET)], [some("SecretConflict")]);
    assert_eq!(alone[&name(10)], [Value::Null]);
    assert_eq!(alone["goes"], [Value::Null, Value::Null, Value::Null]);
    let mut rivals = reasons[&"stays".to_owned()].clone();
    rivals.sort();
    assert_eq!(rivals, [some("Bound"), some("BucketNameConflict"), some("BucketNameConflict")]);
    let renamed = &alone[&name(3)][0];
    assert_eq!(
        (&renamed["consumer"], &renamed["request"], &renamed["credentials"]),
        (&json!(1), &json!("now"), &json!(1))
    );
}
