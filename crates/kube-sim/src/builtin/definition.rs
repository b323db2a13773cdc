//! CustomResourceDefinitions: default values
//! (`k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go`).

use serde_json::{Value, json};

/// Sets the defaults of names and conversion.
pub(super) fn normalize(definition: &mut Value) {
    let spec = &mut definition["spec"];
    if !spec.is_object() {
        return;
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let Some(kind) = spec["names"]["kind"].as_str().map(str::to_owned) else { return };
    let names = &mut spec["names"];
    for (name, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names[name].as_str().is_none_or(str::is_empty) {
            names[name] = default.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_the_kind() {
        let mut definition = json!({"spec": {"names": {"kind": "Thing", "plural": "things", "singular": "it"}}});
        normalize(&mut definition);
        let names = &definition["spec"]["names"];
        assert_eq!((&names["singular"], &names["listKind"]), (&json!("it"), &json!("ThingList")));
        assert_eq!(definition["spec"]["conversion"]["strategy"], "None");
    }
}
