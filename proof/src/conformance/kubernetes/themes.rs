//! Themes of sequences.

use fastrand::Rng;
use serde_json::{Value, json};

use super::bodies::{self, maybe, one};
use super::call::{APPLY, Call, JSON, Kind, MERGE, Operation, Page, STRATEGIC, Scope, Verb, Watch};
use super::strange;

/// Number of operations in a sequence about objects.
const LENGTH: usize = 30;
/// Names of objects. They are few, so that operations hit the same objects.
const NAMES: [&str; 3] = ["a", "b", "c"];
const SELECTORS: [&str; 6] = ["app=a", "app in (a, b)", "tier", "tier=front,app!=c", "!gone", "app notin (b)"];

/// Operations on objects of one or two kinds: every way to write, lists, watches. Nothing that
/// makes a controller act.
pub(super) fn objects(rng: &mut Rng) -> Vec<Operation> {
    let kinds = [a_kind(rng), a_kind(rng)];
    let mut all = Vec::with_capacity(LENGTH);
    for index in 0..LENGTH {
        let kind = one(rng, &kinds);
        let name = bodies::name(kind, one(rng, &NAMES));
        all.push(operation(rng, kind, &name, index));
    }
    all
}

/// Returns a random kind. Namespaces are rare, because each deletion is work for the real
/// controller.
fn a_kind(rng: &mut Rng) -> Kind {
    let kind = one(rng, &Kind::ALL);
    if kind == Kind::Namespace && rng.u8(..100) < 70 { Kind::BucketClaim } else { kind }
}

fn operation(rng: &mut Rng, kind: Kind, name: &str, index: usize) -> Operation {
    match rng.u8(..100) {
        ..20 => create(rng, kind, name, index).into(),
        20..33 => replace(rng, kind, name).into(),
        33..43 => merge(rng, kind, name).into(),
        43..51 => json_patch(rng, kind, name).into(),
        51..55 => strategic(rng, kind, name).into(),
        55..68 => apply(rng, kind, name).into(),
        68..73 => Call::new(Verb::Get, kind, Some(name)).into(),
        73..79 => list(rng, kind).into(),
        79..82 => pages(rng, kind),
        // The time until a namespace is gone depends on its controller; the theme `namespaces`
        // covers it.
        82..96 if kind == Kind::Namespace => Call::new(Verb::Get, kind, Some(name)).into(),
        82..86 => Operation::Watch(watch(rng, kind, name, index)),
        86..94 => delete(rng, kind, name).into(),
        94..96 => delete_collection(rng, kind).into(),
        _ => strange::call(rng, kind, name).into(),
    }
}

/// Adds parameters that every write may have.
fn written(rng: &mut Rng, call: Call) -> Call {
    let call = call.maybe("fieldManager", maybe(rng, 40, |rng| one(rng, &["alpha", "beta"])));
    let call = call.maybe("dryRun", maybe(rng, 7, |_| "All"));
    call.maybe("fieldValidation", maybe(rng, 20, |rng| one(rng, &["Strict", "Warn", "Ignore"])))
}

/// Directs a write to the status with 25 % probability. Only the controller writes a namespace's
/// status.
fn part(rng: &mut Rng, call: Call) -> Call {
    if call.kind != Kind::Namespace && rng.u8(..100) < 25 { call.status() } else { call }
}

fn create(rng: &mut Rng, kind: Kind, name: &str, index: usize) -> Call {
    let mut body = bodies::random(rng, kind, name);
    if kind != Kind::Namespace && rng.u8(..100) < 8 {
        body["metadata"]["generateName"] = format!("gen-{index}-").into();
        body["metadata"]["name"] = Value::Null;
    }
    written(rng, Call::new(Verb::Post, kind, None)).body(body)
}

/// Returns a UID and a version for preconditions, mostly those that the object has.
fn stated(rng: &mut Rng, kind: Kind, name: &str) -> (Option<String>, Option<String>) {
    let of = format!("{}/{name}", kind.plural());
    let version = match rng.u8(..100) {
        ..60 => Some(format!("$(version {of})")),
        60..70 => Some(format!("$(first {of})")),
        70..72 => Some("0".to_owned()),
        _ => None,
    };
    let uid = match rng.u8(..100) {
        ..15 => Some(format!("$(uid {of})")),
        15..18 => Some("00000000-0000-4000-8000-000000000000".to_owned()),
        _ => None,
    };
    (uid, version)
}

fn replace(rng: &mut Rng, kind: Kind, name: &str) -> Call {
    let mut body = bodies::random(rng, kind, name);
    let (uid, version) = stated(rng, kind, name);
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = version.into();
    }
    if let Some(uid) = uid {
        body["metadata"]["uid"] = uid.into();
    }
    let call = part(rng, Call::new(Verb::Put, kind, Some(name)));
    written(rng, call).body(body)
}

/// Use of null in a patch to remove fields. In an apply, null is an ordinary value that no client
/// needs.
#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    Sometimes,
    Never,
}

/// Returns a partial object with a few fields, for a patch.
fn partial(rng: &mut Rng, kind: Kind, nulls: Nulls) -> Value {
    let mut body = json!({});
    for _ in 0..rng.usize(1..4) {
        let field = bodies::any_field(rng, kind);
        let value = if nulls == Nulls::Sometimes && rng.u8(..100) < 12 { Value::Null } else { field.value(rng) };
        if nulls == Nulls::Sometimes || !value.to_string().contains("null") {
            bodies::set(&mut body, &field.path, value);
        }
    }
    body
}

fn merge(rng: &mut Rng, kind: Kind, name: &str) -> Call {
    let mut body = partial(rng, kind, Nulls::Sometimes);
    let (uid, version) = stated(rng, kind, name);
    if let Some(version) = version.filter(|_| rng.bool()) {
        body["metadata"]["resourceVersion"] = version.into();
    }
    if let Some(uid) = uid {
        body["metadata"]["uid"] = uid.into();
    }
    let call = part(rng, Call::new(MERGE, kind, Some(name)));
    written(rng, call).body(body)
}

fn strategic(rng: &mut Rng, kind: Kind, name: &str) -> Call {
    let mut body = partial(rng, kind, Nulls::Sometimes);
    if rng.u8(..100) < 40 {
        directive(rng, &mut body["metadata"]);
    }
    let call = Call::new(STRATEGIC, kind, Some(name));
    written(rng, call).body(body)
}

/// Adds directives that only a strategic merge patch has.
fn directive(rng: &mut Rng, metadata: &mut Value) {
    let (a, b) = ("example.io/a", "example.io/b");
    let order = one(rng, &[[a, b], [b, a]]);
    match rng.u8(..5) {
        // Replaces all metadata: combined with items to add, the order would be random.
        0 => *metadata = json!({"$deleteFromPrimitiveList/finalizers": [one(rng, &order)]}),
        1 => metadata["$setElementOrder/finalizers"] = json!(order),
        2 => metadata["finalizers"] = json!([one(rng, &order), "example.io/c"]),
        3 => metadata["labels"] = json!({"$patch": "replace", "in": "$(place)", "app": one(rng, &["a", "b"])}),
        _ => metadata["annotations"] = json!({"$patch": one(rng, &["delete", "replace", "merge"])}),
    }
}

fn json_patch(rng: &mut Rng, kind: Kind, name: &str) -> Call {
    let mut operations = Vec::new();
    let (_, version) = stated(rng, kind, name);
    if let Some(version) = version.filter(|_| rng.bool()) {
        operations.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
    }
    for _ in 0..rng.usize(1..3) {
        let field = bodies::any_field(rng, kind);
        let path = field.pointer();
        operations.push(match rng.u8(..100) {
            ..40 => json!({"op": "add", "path": path, "value": field.value(rng)}),
            40..65 => json!({"op": "replace", "path": path, "value": field.value(rng)}),
            65..85 => json!({"op": "remove", "path": path}),
            85..95 => json!({"op": "test", "path": path, "value": field.value(rng)}),
            _ => json!({"op": "copy", "from": "/metadata/name", "path": path}),
        });
    }
    let call = part(rng, Call::new(JSON, kind, Some(name)));
    written(rng, call).body(operations.into())
}

fn apply(rng: &mut Rng, kind: Kind, name: &str) -> Call {
    let mut body = partial(rng, kind, Nulls::Never);
    if rng.u8(..100) < 60 {
        let mut whole = bodies::plain(kind, name);
        json_patch::merge(&mut whole, &body);
        body = whole;
    }
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.as_str().into();
    body["metadata"]["name"] = name.into();
    let (uid, version) = stated(rng, kind, name);
    if let Some(version) = version.filter(|_| rng.u8(..100) < 10) {
        body["metadata"]["resourceVersion"] = version.into();
    }
    if let Some(uid) = uid.filter(|_| rng.bool()) {
        body["metadata"]["uid"] = uid.into();
    }
    let call = part(rng, Call::new(APPLY, kind, Some(name)));
    let call = call.maybe("fieldManager", maybe(rng, 97, |rng| one(rng, &["alpha", "beta"])));
    let call = call.maybe("force", maybe(rng, 50, |rng| one(rng, &["true", "false"])));
    call.maybe("dryRun", maybe(rng, 7, |_| "All")).body(body)
}

fn list(rng: &mut Rng, kind: Kind) -> Call {
    let mut call = Call::new(Verb::Get, kind, None);
    let chosen = maybe(rng, 50, |rng| one(rng, &SELECTORS).to_owned());
    let everywhere = rng.u8(..100) < 20;
    let own = if everywhere { Some("in=$(place)".to_owned()) } else { bodies::own_label(kind) };
    if everywhere {
        call.scope = Scope::Everywhere;
    }
    let labels: Vec<String> = [own, chosen].into_iter().flatten().collect();
    let call = call.maybe("labelSelector", (!labels.is_empty()).then(|| labels.join(",")));
    let name = bodies::name(kind, one(rng, &NAMES));
    call.maybe("fieldSelector", maybe(rng, 20, |rng| field_selector(rng, kind, &name)))
}

/// Returns a paginated list of objects that only this sequence has, because the number of pages
/// depends on all objects.
fn pages(rng: &mut Rng, kind: Kind) -> Operation {
    let first = list(rng, kind);
    if !kind.is_namespaced() || first.scope == Scope::Everywhere {
        return first.into();
    }
    Operation::Pages(Page { first: first.query("limit", rng.u8(1..3).to_string()), pages: 4 })
}

fn field_selector(rng: &mut Rng, kind: Kind, name: &str) -> String {
    let own = match kind {
        Kind::Secret => "type=Opaque",
        Kind::BucketClaim => "spec.backendRef.name=minio",
        Kind::Event => "reason=Bound,type!=Warning",
        Kind::Namespace => "status.phase=Active",
        Kind::S3Backend | Kind::Lease => "metadata.name!=nobody",
    };
    match rng.u8(..100) {
        ..40 => format!("metadata.name={name}"),
        40..60 => format!("metadata.name!={name}"),
        60..90 => own.to_owned(),
        _ => "spec.nothing=1".to_owned(),
    }
}

fn watch(rng: &mut Rng, kind: Kind, name: &str, index: usize) -> Watch {
    let from = match rng.u8(..100) {
        ..50 => Some(format!("$(first {}/{name})", kind.plural())),
        // Only a version of the same kind: a real server may not have observed a version of another
        // kind yet.
        50..80 => Some(format!("$(version {}/{name})", kind.plural())),
        80..97 => Some("0".to_owned()),
        _ => None,
    };
    let streaming = rng.u8(..100) < 3;
    Watch {
        kind,
        from: from.filter(|_| !streaming),
        labels: maybe(rng, 50, |rng| one(rng, &SELECTORS)),
        marker: bodies::name(kind, &format!("marker-{index}")),
        streaming,
    }
}

fn delete(rng: &mut Rng, kind: Kind, name: &str) -> Call {
    let (uid, version) = stated(rng, kind, name);
    let mut options = json!({});
    if rng.u8(..100) < 40 {
        options = json!({"preconditions": {"uid": uid, "resourceVersion": version}});
    }
    if rng.u8(..100) < 20 {
        options["propagationPolicy"] = one(rng, &["Background", "Background", "Sideways"]).into();
    }
    let call = Call::new(Verb::Delete, kind, Some(name)).maybe("dryRun", maybe(rng, 7, |_| "All"));
    if options == json!({}) { call } else { call.body(options) }
}

fn delete_collection(rng: &mut Rng, kind: Kind) -> Call {
    let call = Call::new(Verb::Delete, kind, None);
    let selector = one(rng, &["app=a", "app=b", "tier=back"]);
    let own = bodies::own_label(kind).map(|own| format!("{own},"));
    call.query("labelSelector", format!("{}{selector}", own.unwrap_or_default()))
}

/// Returns a deletion with a random propagation policy in its body.
fn with_policy(rng: &mut Rng, kind: Kind, name: &str) -> Call {
    let call = Call::new(Verb::Delete, kind, Some(name));
    match one(rng, &[None, Some("Background"), Some("Foreground"), Some("Orphan")]) {
        Some(policy) => call.body(json!({"propagationPolicy": policy})),
        None => call,
    }
}

/// Returns a sequence of writes of objects that own each other, and of their deletions. After each
/// write the sequence waits for the garbage collector.
///
/// If finalizers block some of them, no object has several owners: the real collector's workers
/// read one owner after another while other workers delete these owners or end their waiting, and a
/// blocked object keeps the result of that race.
pub(super) fn owners(rng: &mut Rng) -> Vec<Operation> {
    let kinds = [Kind::Secret, Kind::Lease, Kind::BucketClaim];
    let held = rng.bool();
    let mut all = Vec::new();
    let mut made: Vec<(Kind, String)> = Vec::new();
    for index in 0..rng.usize(3..6) {
        let kind = one(rng, &kinds);
        let name = format!("o{index}");
        let mut body = bodies::plain(kind, &name);
        let mut owners: Vec<&(Kind, String)> = made.iter().filter(|_| rng.bool()).collect();
        if held {
            rng.shuffle(&mut owners);
            owners.truncate(1);
        }
        let references = owners.into_iter().map(|(owner, of)| reference(*owner, of)).collect();
        body["metadata"]["ownerReferences"] = Value::Array(references);
        let last = body["metadata"]["ownerReferences"].as_array_mut().and_then(|all| all.last_mut());
        if let Some(last) = last.filter(|_| rng.u8(..100) < 40) {
            last["blockOwnerDeletion"] = true.into();
        }
        if held && rng.u8(..100) < 40 {
            body["metadata"]["finalizers"] = json!(["example.io/a"]);
        }
        all.push(Call::new(Verb::Post, kind, None).body(body).into());
        made.push((kind, name));
    }
    all.push(Operation::Settle);
    for _ in 0..rng.usize(2..5) {
        let (kind, name) = made[rng.usize(..made.len())].clone();
        all.push(with_policy(rng, kind, &name).into());
        all.push(Operation::Settle);
        all.extend(made.iter().map(|(kind, name)| Call::new(Verb::Get, *kind, Some(name)).into()));
    }
    let (kind, name) = made[rng.usize(..made.len())].clone();
    let free = json!({"metadata": {"finalizers": null}});
    all.push(Call::new(MERGE, kind, Some(&name)).body(free).into());
    all.push(Operation::Settle);
    all.extend(made.iter().map(|(kind, name)| Call::new(Verb::Get, *kind, Some(name)).into()));
    all
}

fn reference(kind: Kind, name: &str) -> Value {
    let uid = format!("$(uid {}/{name})", kind.plural());
    json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": name, "uid": uid})
}

/// Returns a sequence of writes in a namespace, and of its deletion. After each write the sequence
/// waits for the namespace controller.
pub(super) fn namespaces(rng: &mut Rng) -> Vec<Operation> {
    let name = bodies::name(Kind::Namespace, "x");
    let inside = |verb: Verb, kind: Kind, object: Option<&str>| {
        let mut call = Call::new(verb, kind, object);
        call.scope = Scope::Namespace(bodies::name(Kind::Namespace, "x"));
        call
    };
    let held = rng.bool();
    let mut namespace = bodies::plain(Kind::Namespace, &name);
    if held {
        namespace["metadata"]["finalizers"] = json!(["example.io/a"]);
    }
    let mut all = vec![Operation::from(Call::new(Verb::Post, Kind::Namespace, None).body(namespace))];
    let kinds = [Kind::Secret, Kind::BucketClaim, Kind::Lease];
    let mut stuck = None;
    for (index, kind) in kinds.into_iter().enumerate() {
        let object = format!("n{index}");
        let mut body = bodies::plain(kind, &object);
        if rng.u8(..100) < 30 {
            body["metadata"]["finalizers"] = json!(["example.io/a"]);
            stuck = Some((kind, object));
        }
        all.push(inside(Verb::Post, kind, None).body(body).into());
    }
    all.push(with_policy(rng, Kind::Namespace, &name).into());
    all.push(Operation::Settle);
    all.push(Call::new(Verb::Get, Kind::Namespace, Some(&name)).into());
    all.push(inside(Verb::Post, Kind::Secret, None).body(bodies::plain(Kind::Secret, "late")).into());
    all.push(
        inside(APPLY, Kind::Secret, Some("later"))
            .query("fieldManager", "alpha")
            .body(bodies::plain(Kind::Secret, "later"))
            .into(),
    );
    all.push(Call::new(Verb::Delete, Kind::Namespace, Some(&name)).into());
    all.push(Operation::Settle);
    let free = json!({"metadata": {"finalizers": null}});
    if let Some((kind, object)) = stuck {
        all.push(inside(Verb::Get, kind, Some(&object)).into());
        all.push(inside(MERGE, kind, Some(&object)).body(free.clone()).into());
        all.push(Operation::Settle);
    }
    all.push(Call::new(Verb::Get, Kind::Namespace, Some(&name)).into());
    if held {
        all.push(Call::new(MERGE, Kind::Namespace, Some(&name)).body(free).into());
    }
    all.push(Operation::Settle);
    all.push(Call::new(Verb::Get, Kind::Namespace, Some(&name)).into());
    all
}
