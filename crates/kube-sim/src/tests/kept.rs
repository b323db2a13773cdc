//! Persistence: a cluster is restored from its kept state.

use bytes::Bytes;

use super::empty_cluster;
use crate::Kept;

fn has_things(kept: &[Kept]) -> bool {
    kept.iter().any(|one| one.plural == "things")
}

#[test]
fn objects_of_kinds_that_nothing_defines_are_left_out() {
    let text = br#"{"apiVersion":"example.io/v1","kind":"Thing","metadata":{"name":"t","namespace":"default"}}"#;
    let [group, plural, namespace, name] = ["example.io", "things", "default", "t"].map(str::to_owned);
    let object = Some(Bytes::from_static(text));
    let thing = Kept { group, plural, namespace, name, version: 9, object, completed_on_read: false };
    let cluster = empty_cluster();
    let kept = [cluster.kept(), vec![thing.clone()]].concat();
    assert_eq!(cluster.restore(kept, 9), Ok(vec![thing]));
    assert!(!has_things(&cluster.kept()));
    assert!(cluster.resource_version() > 9);
}
