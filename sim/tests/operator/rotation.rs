//! Credentials are replaced under a tenant that never stops working (spec §3.3).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use stowage_sim::effects::{CrashPoint, EffectPattern, Fault, Plan, ProcessFault};
use stowage_sim::world::{OPERATOR_NAMESPACE, World};

use crate::support::{Stage, claim_with, condition, keys, object, published, ready, secrets, tenant, works};

const OVERLAP: u64 = 300;

/// A Bound claim with this rotation policy, a good while after its first credential was made.
pub async fn bound(stage: &Stage, policy: &str) {
    stage.apply(&claim_with("team-a", "photos", &format!("rotationPolicy: {{{policy}}}"))).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
    stage.world.pass(Duration::from_secs(120)).await;
}

pub async fn request(stage: &Stage, value: &str) {
    let patch = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": value}}});
    stage.patch("bucketclaims", "team-a", "photos", patch).await;
}

pub fn status(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "photos")["status"].clone()
}

// covers: 1.annotation.rotate, 1.status.rotationGeneration, 1.status.handledRotateRequest, 3.3.due.request, 3.3.stamp
// covers: 3.3.stamp.enforced, 4.event.Rotated
#[test]
fn a_request_rotates_once_and_the_old_key_works_for_the_overlap() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        let world = &stage.world;
        let old = published(world);
        let (old_client, bucket) = tenant(world, "team-a", "photos-s3");
        request(&stage, "now").await;
        stage.soon("the Secret is switched", 5, |world| published(world) != old).await;
        let switched = world.clock.now();
        stage.soon("the old key is stamped", 10, |world| keys(world)[&old].is_some()).await;
        let expiry = keys(world)[&old].unwrap();
        assert!(expiry >= switched + Duration::from_secs(OVERLAP), "late is allowed, early is not");
        assert_eq!(keys(world).len(), 2);
        assert_eq!(keys(world)[&published(world)], None);
        let (new_client, _) = tenant(world, "team-a", "photos-s3");
        assert!(works(&old_client, &bucket).await && works(&new_client, &bucket).await);
        assert_eq!(
            (&status(world)["handledRotateRequest"], &status(world)["rotationGeneration"]),
            (&json!("now"), &json!(2))
        );

        world.pass(Duration::from_secs(OVERLAP + 20)).await;
        assert!(!works(&old_client, &bucket).await, "the gateway enforces the stamp");
        assert!(works(&new_client, &bucket).await);
        stage.soon("the old Secret is gone", 120, |world| keys(world).len() == 1).await;
        world.pass(Duration::from_secs(7200)).await;
        assert_eq!(status(world)["rotationGeneration"], 2, "once asked, once rotated");
        let objects = world.cluster.objects();
        let rotated = objects.iter().filter(|o| o.plural == "events" && o.object["reason"] == "Rotated").count();
        assert_eq!(rotated, 1);
    });
}

// covers: 1.annotation.rotate, 3.3.twoKeys, 3.3.coalesced
#[test]
fn requests_during_a_rotation_count_as_one() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        for value in ["1", "2", "3", "4", "5"] {
            request(&stage, value).await;
            stage.world.pass(Duration::from_secs(20)).await;
            assert!(keys(&stage.world).len() <= 2);
        }
        stage.world.pass(Duration::from_secs(3 * OVERLAP)).await;
        let status = status(&stage.world);
        assert_eq!((&status["handledRotateRequest"], &status["rotationGeneration"]), (&json!("5"), &json!(3)));
        assert_eq!(keys(&stage.world).len(), 1);
    });
}

// covers: 1.status.rotatedAt, 1.status.nextRotationAt, 3.3.due.time, 3.3.twoKeys
#[test]
fn time_rotates_at_the_interval_and_a_tenant_that_rereads_the_secret_never_fails() {
    Stage::run("", async |stage| {
        bound(&stage, "mode: TimeBased, intervalDays: 7, overlapSeconds: 7200").await;
        let world = &stage.world;
        let next = status(world)["nextRotationAt"].as_str().unwrap().parse::<Timestamp>().unwrap();
        assert_eq!(
            next,
            status(world)["rotatedAt"].as_str().unwrap().parse::<Timestamp>().unwrap()
                + Duration::from_secs(7 * 86_400)
        );
        let mut held = tenant(world, "team-a", "photos-s3");
        for half_hour in 0..8 * 24 * 2 {
            assert!(works(&held.0, &held.1).await, "half hour {half_hour}");
            if half_hour % 2 == 0 {
                held = tenant(world, "team-a", "photos-s3");
            }
            assert!(keys(world).len() <= 2);
            world.pass(Duration::from_secs(1800)).await;
        }
        assert_eq!(status(world)["rotationGeneration"], 2, "one rotation in eight days");
    });
}

// covers: 3.3.stamp.enforced
#[test]
fn without_overlap_the_old_key_stops_at_once() {
    Stage::run("", async |stage| {
        bound(&stage, "overlapSeconds: 0").await;
        let (old_client, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        let old = published(&stage.world);
        request(&stage, "now").await;
        stage.soon("the Secret is switched", 5, |world| published(world) != old).await;
        stage.world.pass(Duration::from_secs(5)).await;
        assert!(!works(&old_client, &bucket).await);
    });
}

// covers: 2.internal.healed
#[test]
fn a_damaged_credential_is_replaced_on_request() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        let name = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
        stage.patch("secrets", OPERATOR_NAMESPACE, &name, json!({"data": {"secret_access_key": null}})).await;
        stage.until_ready_is("team-a", "photos", "CreationInconsistent").await;
        request(&stage, "heal").await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let (client, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        assert!(works(&client, &bucket).await);
    });
}

/// A rotation by request with a plan of faults, seen through to the end of the overlap. Says how many effects there
/// were before and after.
fn rotate(plan: Plan) -> (u64, u64, u32) {
    let text = plan.to_string();
    Stage::run(&text, async |stage| {
        bound(&stage, "overlapSeconds: 60").await;
        let world = &stage.world;
        let before = world.effects.trace().effects();
        let old = published(world);
        let (old_client, bucket) = tenant(world, "team-a", "photos-s3");
        request(&stage, "now").await;
        let stamped = |world: &World| published(world) != old && keys(world).get(&old).is_some_and(Option::is_some);
        stage.until(&format!("[{text}] the key is replaced, the old one stamped"), stamped).await;
        let stamp = keys(world)[&old];
        while world.clock.now() < stamp.unwrap() {
            assert!(
                works(&old_client, &bucket).await,
                "[{text}] a key must work until its own expires-at\n{}",
                stage.trace()
            );
            assert_eq!(keys(world)[&old], stamp, "[{text}] a stamp never moves");
            world.pass(Duration::from_secs(20)).await;
        }
        stage.until(&format!("[{text}] only the new key is left"), |world| keys(world).len() == 1).await;
        let effects = world.effects.trace().effects();
        world.pass(Duration::from_secs(60)).await;
        let claim = object(world, "bucketclaims", "team-a", "photos");
        assert_eq!(keys(world).keys().next(), Some(&published(world)), "[{text}]\n{}", stage.trace());
        assert_eq!(
            (ready(world, "team-a", "photos").as_str(), condition(&claim, "CredentialsProvisioned").as_str()),
            ("Bound", "SecretWritten")
        );
        assert_eq!(claim["status"]["handledRotateRequest"], "now", "[{text}]");
        let (client, bucket) = tenant(world, "team-a", "photos-s3");
        assert!(works(&client, &bucket).await);
        (before, effects, stage.operator.crashes())
    })
}

// covers: 1.credentialsProvisioned.SecretWritten, 3.3.resumed, 3.3.stamp.fixed, 3.3.neverEarly, 3.3.noStray
#[test]
fn a_crash_at_every_effect_of_a_rotation_costs_nobody_a_key() {
    let (before, effects, _) = rotate(Plan::default());
    let mut crashes = 0;
    for number in before + 1..=effects {
        for point in CrashPoint::ALL {
            let effect = EffectPattern::Number(number.try_into().expect("counted from 1"));
            crashes += u64::from(rotate(Plan::single(effect, Fault::Process(ProcessFault::Crash(point)))).2);
        }
    }
    println!("{crashes} crashes at {} effects of a rotation", effects - before);
    assert_eq!(crashes, 3 * (effects - before));
}

// covers: 3.3.resumed, 3.3.neverEarly, 3.3.noStray
#[test]
fn a_lost_answer_or_conflict_at_every_effect_of_a_rotation_costs_nobody_a_key() {
    let (before, effects, _) = rotate(Plan::default());
    for number in before + 1..=effects {
        for fault in ["lost-answer", "lost-request", "conflict", "server-error(applied)"] {
            rotate(format!("#{number} {fault}").parse().expect("a plan"));
        }
    }
}
