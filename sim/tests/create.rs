//! The create path: what it costs undisturbed, and that no fault at any effect of it leaves anything but one bucket,
//! one credential, one consumer Secret and a Bound claim.

use stowage_sim::determinism::run_seeded;
use stowage_sim::world::{Options, World};

const READY: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: v1
kind: Secret
metadata: {name: s3-admin, namespace: stowage-system}
stringData: {AWS_ACCESS_KEY_ID: STOWAGEADMIN, AWS_SECRET_ACCESS_KEY: stowage-admin-secret-key-for-demonstration}
---
apiVersion: broker.stowage.io/v1alpha1
kind: S3Backend
metadata: {name: main}
spec:
  endpoint: http://s3.example:9000
  adminCredentialsSecretRef: {name: s3-admin, namespace: stowage-system}
";

const CLAIM: &str = "
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: photos, namespace: team-a}
spec:
  backendRef: {name: main}
";

#[test]
fn smoke() {
    tracing_subscriber::fmt().with_env_filter("off").with_test_writer().init();
    run_seeded(1, || async {
        let mut world = World::new(Options::default()).await;
        let kube = world.kube();
        world.apply(&kube, READY).await;
        let operator = world.start_operator();
        operator.ready().await;
        world.pass(std::time::Duration::from_secs(5)).await;
        let before = world.effects.trace().effects();
        world.apply(&kube, CLAIM).await;
        world.pass(std::time::Duration::from_secs(20)).await;
        for line in world.effects.trace().lines() {
            println!("{line}");
        }
        println!("{before}");
        for object in world.cluster.objects() {
            println!("{object:?}");
        }
    });
}
