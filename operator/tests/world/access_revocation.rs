//! A leaked key of an access that the API server fails to delete (spec §8).

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::effects::Plan;
use stowage_world::{Accesses, Options, World};

use crate::accesses::{OWN, access, client, keys, open, reason};
use crate::support::{Stage, works};

/// Returns the notes of Events with this reason about the access, in order.
fn notes(world: &World, reason: &str) -> Vec<String> {
    let of_access = |event: &Value| event["regarding"]["kind"] == "BucketAccess" && event["reason"] == reason;
    let objects = world.cluster.objects();
    let events = objects.iter().filter(|it| it.plural == "events" && of_access(&it.object));
    events.filter_map(|it| Some(it.object["note"].as_str()?.to_owned())).collect()
}

/// A failed revocation is the worst moment to report success, or to report nothing.
// covers: 8.status.server, 8.key.earlier
#[rstest]
#[case::refused("kube:delete secrets forbidden")]
#[case::failed("kube:delete secrets server-error(not)")]
fn a_revocation_that_the_api_server_does_not_carry_out_says_that_the_key_works(#[case] plan: &str) {
    let plan = plan.parse().expect("the plan is well-formed");
    Stage::run_with(Options { accesses: Accesses::Served, plan, ..Options::default() }, async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let (old, before) = (client(world, "team-a"), access(world, "team-a")["status"].clone());
        let revoke = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": "leaked"}}});
        stage.patch("bucketaccesses", "team-a", "reader", revoke).await;
        stage.until("it is told", |world| reason(world, "team-a") == "ServerError").await;
        assert!(works(&old, "team-a-photos").await);
        let told = access(world, "team-a")["status"].clone();
        for field in ["accessKeyId", "rotatedAt", "boundSecretName", "buckets"] {
            assert_eq!(told[field], before[field], "{field}");
        }
        let words = "the revoked key works until it is";
        assert!(told["conditions"][0]["message"].as_str().is_some_and(|it| it.contains(words)), "{told:#}");
        world.pass(Duration::from_secs(600)).await;
        let notes = notes(world, "ServerError");
        assert!(notes.len() == 1 && notes[0].contains(words), "{notes:?}");

        world.effects.set_plan(Plan::default());
        let nudge = json!({"metadata": {"annotations": {"broker.stowage.io/reconcile": "now"}}});
        stage.patch("bucketaccesses", "team-a", "reader", nudge).await;
        stage.until("it is open again", |world| reason(world, "team-a") == "Open").await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!works(&old, "team-a-photos").await && works(&client(world, "team-a"), "team-a-photos").await);
        // An earlier pass bumped the generation to 2 without creating the key, and generation 2
        // never gets one.
        assert_eq!((access(world, "team-a")["status"]["rotationGeneration"].as_u64(), keys(world).len()), (Some(3), 1));
    });
}

/// The failure is reported at once for an access that is being deleted.
// covers: 8.status.server
#[test]
fn an_access_whose_keys_the_api_server_does_not_delete_says_why_it_stays() {
    let plan = "kube:delete secrets server-error(not)".parse().expect("the plan is well-formed");
    Stage::run_with(Options { accesses: Accesses::Served, plan, ..Options::default() }, async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        stage.delete("bucketaccesses", "team-a", "reader").await;
        stage.soon("it is told", 2, |world| reason(world, "team-a") == "ServerError").await;
        world.effects.set_plan(Plan::default());
        stage.until("it is gone", |world| access(world, "team-a").is_null()).await;
        assert!(keys(world).is_empty());
    });
}
