//! Edits of a bound claim (spec §3.7).

use serde_json::{Value, json};
use stowage_sim::world::World;

use crate::support::{Stage, claim, data, object, secrets, tenant_can_work};

// covers: 1.status.boundSecretName, 3.7.rename
#[test]
fn a_renamed_consumer_secret_is_written_first_and_the_old_one_removed_then() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let before = stage.world.effects.trace().effects();
        let renamed = json!({"spec": {"writeConnectionSecretToRef": {"name": "photos-new"}}});
        stage.patch("bucketclaims", "team-a", "photos", renamed).await;
        stage
            .until("the new Secret stands alone", |world| secrets(world, "team-a", "consumer-secret") == ["photos-new"])
            .await;
        stage.until("the status follows", |world| status(world)["boundSecretName"] == "photos-new").await;
        let trace = stage.world.effects.trace();
        let lines = trace.lines().iter().filter(|line| line.number > before).map(ToString::to_string);
        let writes: Vec<String> = lines.filter(|line| line.contains("secrets team-a/")).collect();
        assert!(writes[0].contains("kube:create") && writes[1].contains("kube:delete"), "{writes:#?}");
        tenant_can_work(&stage.world, "team-a", "photos-new").await;
    });
}

// covers: 2.consumer.conflict, 3.7.rename.foreign
#[test]
fn a_rename_to_a_strangers_secret_is_a_conflict_and_the_old_one_stays() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage
            .apply(
                "{apiVersion: v1, kind: Secret, metadata: {name: theirs, namespace: team-a}, stringData: {x: theirs}}",
            )
            .await;
        let renamed = json!({"spec": {"writeConnectionSecretToRef": {"name": "theirs"}}});
        stage.patch("bucketclaims", "team-a", "photos", renamed).await;
        stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        assert_eq!(status(&stage.world)["boundSecretName"], "photos-s3");
        assert_eq!(data(&stage.world, "team-a", "theirs").len(), 1);
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

fn status(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "photos")["status"].clone()
}
