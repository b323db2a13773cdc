//! Watches: events, starting versions, order and end.

use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::*;

/// Formats an event briefly: `A name@version`.
fn short(event: &WatchEvent<DynamicObject>) -> String {
    let line = |letter: &str, object: &DynamicObject| format!("{letter} {}@{}", object.name_any(), version(object));
    match event {
        WatchEvent::Added(object) => line("A", object),
        WatchEvent::Modified(object) => line("M", object),
        WatchEvent::Deleted(object) => line("D", object),
        WatchEvent::Bookmark(bookmark) => format!("B @{}", bookmark.metadata.resource_version),
        WatchEvent::Error(status) => format!("E {} {}", status.code, status.reason),
    }
}

type Events = std::pin::Pin<Box<dyn Stream<Item = Result<WatchEvent<DynamicObject>, kube::Error>> + Send>>;

async fn watch(f: &Fixture, params: &WatchParams, version: u64) -> Events {
    Box::pin(f.things().watch(params, &version.to_string()).await.expect("a stream"))
}

/// Returns the next event, or `-` if there is none within a second.
async fn next(events: &mut Events) -> String {
    match timeout(Duration::from_secs(1), events.next()).await {
        Ok(Some(event)) => short(&event.expect("an event")),
        Ok(None) => "end".to_owned(),
        Err(_) => "-".to_owned(),
    }
}

async fn label(f: &Fixture, name: &str, labels: Value) -> u64 {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    version(&f.things().patch(name, &PatchParams::default(), &patch).await.expect("patched"))
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_came_after_its_version() {
    let f = Fixture::new().await;
    let first = version(&f.make_thing("a").await);
    let second = version(&f.make_thing("b").await);
    let mut events = watch(&f, &WatchParams::default(), first).await;
    assert_eq!(next(&mut events).await, format!("A b@{second}"));
    assert_eq!(next(&mut events).await, "-");
    let third = label(&f, "a", json!({"x": "y"})).await;
    assert_eq!(next(&mut events).await, format!("M a@{third}"));
    f.things().delete("a", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(next(&mut events).await, format!("D a@{}", third + 1), "a deletion has a version of its own");
    f.make_secret("s").await;
    assert_eq!(next(&mut events).await, "-", "other kinds don't concern it");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_nowhere_starts_with_all_that_is() {
    let f = Fixture::new().await;
    let a = version(&f.make_thing("a").await);
    let mut events = watch(&f, &WatchParams::default(), 0).await;
    assert_eq!(next(&mut events).await, format!("A a@{a}"));
    let b = version(&f.make_thing("b").await);
    assert_eq!(next(&mut events).await, format!("A b@{b}"));
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selected_watch() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let mut events = Box::pin(
        f.things()
            .watch(&WatchParams::default().labels("in=yes"), &f.cluster.resource_version().to_string())
            .await
            .expect("a stream"),
    );
    label(&f, "a", json!({"other": "x"})).await;
    let entered = label(&f, "a", json!({"in": "yes"})).await;
    let left = label(&f, "a", json!({"in": "no"})).await;
    let Some(Ok(WatchEvent::Added(object))) = events.next().await else { panic!("it should enter") };
    assert_eq!(version(&object), entered);
    let Some(Ok(WatchEvent::Deleted(object))) = events.next().await else { panic!("it should leave") };
    assert_eq!(object.labels()["in"], "yes", "with its old labels");
    assert_eq!(version(&object), left, "and the new version");
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_version_is_an_error_in_the_stream() {
    let f = Fixture::new().await;
    let old = version(&f.make_thing("a").await);
    f.make_thing("b").await;
    f.cluster.compact();
    let mut events = watch(&f, &WatchParams::default(), old).await;
    assert_eq!(next(&mut events).await, "E 410 Expired");
    assert_eq!(next(&mut events).await, "end");
    let mut events = watch(&f, &WatchParams::default(), f.cluster.resource_version()).await;
    assert_eq!(next(&mut events).await, "-", "the present is still known");
}

#[tokio::test(start_paused = true)]
async fn as_many_changes_are_remembered_as_is_said() {
    let f = Fixture::new().await;
    f.cluster.remember(2);
    let old = version(&f.make_thing("a").await);
    for name in ["b", "c"] {
        f.make_thing(name).await;
    }
    let mut events = watch(&f, &WatchParams::default(), old).await;
    assert!(next(&mut events).await.starts_with('A'), "both are known");
    f.make_thing("d").await;
    let mut events = watch(&f, &WatchParams::default(), old).await;
    assert_eq!(next(&mut events).await, "E 410 Expired");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_with_bookmarks_on_the_way() {
    let f = Fixture::new().await;
    let started = Instant::now();
    let params = WatchParams::default().timeout(210);
    let mut events = watch(&f, &params, f.cluster.resource_version()).await;
    let move_version = async |name| {
        f.make_secret(name).await;
        format!("B @{}", f.cluster.resource_version())
    };
    let write = async {
        let first = move_version("moves-the-version").await;
        tokio::time::sleep(Duration::from_secs(130)).await;
        let second = move_version("moves-it-again").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        [(60, first), (180, second), (210, move_version("moves-it-at-last").await)]
    };
    let read = async {
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            seen.push((started.elapsed().as_secs(), short(&event.expect("an event"))));
        }
        seen
    };
    let (told, seen) = tokio::join!(write, read);
    assert_eq!(seen, told, "each minute, and at the end, unless it is known");
    assert_eq!(started.elapsed().as_secs(), 210);
}

/// Like on a server, a timeout of 0 means the default.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_asked_to_end_at_once_lasts_as_long_as_others() {
    let f = Fixture::new().await;
    let started = Instant::now();
    let params = WatchParams::default().timeout(0).disable_bookmarks();
    let events = watch(&f, &params, f.cluster.resource_version()).await;
    assert_eq!(events.count().await, 0);
    assert_eq!(started.elapsed().as_secs(), 30 * 60);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_ends_with_its_bookmark() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    f.make_thing("b").await;
    let params = WatchParams::default().initial_events();
    let mut events = Box::pin(f.things().watch(&params, "0").await.expect("a stream"));
    let mut names = Vec::new();
    loop {
        match events.next().await.expect("more").expect("an event") {
            WatchEvent::Added(object) => names.push(object.name_any()),
            WatchEvent::Bookmark(bookmark) => {
                assert_eq!(bookmark.metadata.annotations["k8s.io/initial-events-end"], "true");
                break;
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn kubes_watcher_lists_again_after_410() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let f = Fixture::new().await;
        f.make_thing("a").await;
        let applied = watcher::watcher(f.things(), config).default_backoff().applied_objects();
        let mut names = applied.map_ok(|object| object.name_any()).boxed();
        assert_eq!(names.next().await.expect("more").expect("a name"), "a");
        // There are no events for a long time, and the history is discarded. The version of the
        // watch is therefore too old when it is restarted.
        let watching = tokio::spawn(async move {
            let mut seen = Vec::new();
            while let Some(name) = names.next().await {
                seen.push(name);
                if seen.iter().any(|name| name.as_ref().is_ok_and(|name| name == "b")) {
                    break;
                }
            }
            seen
        });
        f.make_secret("moves-the-version").await;
        f.make_thing("c").await;
        f.cluster.compact();
        tokio::time::sleep(Duration::from_secs(600)).await;
        f.make_thing("b").await;
        let seen = timeout(Duration::from_secs(60), watching).await.expect("b is seen").expect("no panic");
        let names: Vec<&str> = seen.iter().flatten().map(String::as_str).collect();
        assert!(names.contains(&"c"), "what a forgotten event told comes with the new list: {seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_watches() {
    let f = Fixture::new().await;
    let namespaces: Api<Namespace> = Api::all(f.client.clone());
    let start = f.cluster.resource_version().to_string();
    let mut events = Box::pin(namespaces.watch_metadata(&WatchParams::default(), &start).await.expect("a stream"));
    f.make_namespace("new").await;
    let Some(Ok(WatchEvent::Added(object))) = events.next().await else { panic!("it should be told") };
    assert_eq!(object.name_any(), "new");
    assert_eq!(object.types.expect("types").kind, "PartialObjectMetadata");
}

#[tokio::test]
async fn two_creates_of_one_name_have_one_winner() {
    let f = Fixture::new().await;
    let (things, post) = (f.things(), PostParams::default());
    let (sent, other) = (thing("a"), thing("a"));
    let (one, two) = tokio::join!(things.create(&post, &sent), things.create(&post, &other));
    assert!(one.is_ok() != two.is_ok());
    assert!(refused(if one.is_ok() { two } else { one }).is_already_exists());
}
