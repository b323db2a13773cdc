//! `crds/` contains the output of `stowage-operator crds`, byte for byte (spec §5).

use std::path::Path;

// covers: 1.crd.printed
#[test]
fn the_manifests_in_the_repository_are_what_the_operator_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/crds.yaml");
    let stored = std::fs::read_to_string(&path).expect("crds/crds.yaml is part of the repository");
    let printed = stowage_operator::crds_yaml().expect("the CRDs can be written as YAML");
    let differs = stored.lines().zip(printed.lines()).position(|(stored, printed)| stored != printed);
    let line = differs.unwrap_or_else(|| stored.lines().count().min(printed.lines().count())) + 1;
    assert!(
        stored == printed,
        "crds/crds.yaml differs from what `stowage-operator crds` prints, first in line {line}; write it anew with \
         `just crds` or `cargo run -p stowage-operator -- crds > crds/crds.yaml`"
    );
}
