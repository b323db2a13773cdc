//! Events (spec §4): one for each transition, none for a pass.

use std::time::Duration;

use rstest::rstest;
use serde_json::json;
use stowage_world::World;
use stowage_world::effects::Line;

use crate::support::{Stage, claim, claim_with, events, object, ready};
use crate::troubles::{RESYNC, Trouble};

/// Returns the number of writes of events, successful or not. A repeated event is a PATCH of the
/// first.
fn event_calls(world: &World) -> usize {
    let is_event = |line: &&Line| line.call.to_string().contains(" events");
    world.effects.trace().lines().iter().filter(is_event).count()
}

fn request() -> serde_json::Value {
    json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}})
}

// covers: 4.event.Bound, 4.event.Rotated, 4.event.BucketRetained
// covers: 4.event.transitions, 4.event.place
#[test]
fn a_whole_life_is_told_in_an_event_per_transition() {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "rotationPolicy: {overlapSeconds: 60}")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let uid = object(&stage.world, "bucketclaims", "team-a", "photos")["metadata"]["uid"].clone();
        stage.world.pass(Duration::from_secs(3600)).await;
        stage.patch("bucketclaims", "team-a", "photos", request()).await;
        stage.world.pass(Duration::from_secs(3600)).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        stage.world.pass(RESYNC).await;
        let told = events(&stage.world, "photos");
        let expected = ["Bound", "Rotated", "BucketRetained"].map(|reason| ("Normal".into(), reason.into()));
        assert_eq!(told, expected);
        assert_eq!(event_calls(&stage.world), expected.len());
        for event in stage.world.cluster.objects().iter().filter(|o| o.plural == "events") {
            let about = &event.object["regarding"];
            assert_eq!(event.namespace, "team-a");
            assert_eq!((&about["kind"], &about["uid"]), (&json!("BucketClaim"), &uid));
        }
    });
}

// covers: 4.event.warnings, 4.event.transitions
#[rstest]
#[case(Trouble::BackendNotReady)]
#[case(Trouble::BackendNotAllowed)]
#[case(Trouble::TemplateInvalid)]
#[case(Trouble::BucketNameConflict)]
#[case(Trouble::BucketExists)]
#[case(Trouble::BucketMissing)]
#[case(Trouble::SecretConflict)]
#[case(Trouble::CreationInconsistent)]
#[case(Trouble::ServedByAnother)]
#[case(Trouble::BackendError)]
#[case(Trouble::BucketNotEmpty)]
#[case(Trouble::DeletionBlocked)]
fn what_blocks_a_claim_is_warned_of_once(#[case] trouble: Trouble) {
    Stage::run("", async |stage| {
        trouble.make(&stage).await;
        stage.world.pass(Duration::from_secs(1)).await;
        let calls = event_calls(&stage.world);
        stage.world.pass(Duration::from_secs(2 * 3600)).await;
        let told = events(&stage.world, "photos");
        let warnings: Vec<&str> = told.iter().filter(|(type_, _)| type_ == "Warning").map(|(_, why)| &**why).collect();
        // There may be others on the way to a blocked deletion, or between two failures.
        assert_eq!(warnings, [trouble.reason()], "{told:?}");
        assert_eq!(event_calls(&stage.world), calls, "nothing changed, nothing is told");
    });
}

// covers: 3.events.bestEffort
#[rstest]
#[case("kube:create events forbidden")]
#[case("kube:create events server-error(not)")]
#[case("kube:create events lost-request")]
#[case("kube:create events hang")]
fn events_that_can_not_be_written_keep_nothing_waiting(#[case] plan: &str) {
    Stage::run(plan, async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.soon("the claim is bound", 5, |world| ready(world, "team-a", "photos") == "Bound").await;
        stage.world.pass(Duration::from_secs(60)).await;
        let calls = event_calls(&stage.world);
        stage.world.pass(RESYNC).await;
        assert_eq!(event_calls(&stage.world), calls, "it is not tried again");
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
    });
}
