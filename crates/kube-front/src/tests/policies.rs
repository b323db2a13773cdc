//! Tests of ValidatingAdmissionPolicies: matching, evaluation, and messages of refusals.

use rstest::rstest;
use serde_json::{Value, json};

use super::front::{Answer, fixture, post, send};
use crate::Front;

const API: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/ns/configmaps";

fn policy(spec: &Value) -> Value {
    let mut whole = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"],
        }]},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
           "metadata": {"name": "rules"}, "spec": whole})
}

fn binding(spec: &Value) -> Value {
    let mut whole = json!({"policyName": "rules", "validationActions": ["Deny"]});
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
           "metadata": {"name": "bound"}, "spec": whole})
}

async fn bind(front: &Front, of_policy: &Value, of_binding: &Value) {
    let made = post(front, &format!("{API}/validatingadmissionpolicies"), &policy(of_policy)).await;
    assert_eq!(made.code, 201, "{}", made.json());
    let made = post(front, &format!("{API}/validatingadmissionpolicybindings"), &binding(of_binding)).await;
    assert_eq!(made.code, 201, "{}", made.json());
}

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn put_map(front: &Front, name: &str, data: &Value) -> Answer {
    post(front, MAPS, &map(name, data)).await
}

/// Compared with kube-apiserver 1.34.
#[tokio::test]
async fn a_refusal_names_policy_binding_and_message() {
    let (_, front) = fixture().await;
    let validation = json!({"expression": "object.data.size == 'small'", "message": " keep it small "});
    bind(&front, &json!({"validations": [validation]}), &json!({})).await;
    assert_eq!(put_map(&front, "good", &json!({"size": "small"})).await.code, 201);
    let refused = put_map(&front, "bad", &json!({"size": "large"})).await;
    let message = "ValidatingAdmissionPolicy 'rules' with binding 'bound' denied request: keep it small";
    assert_eq!(
        refused.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid",
            "message": format!("configmaps \"bad\" is forbidden: {message}"),
            "details": {"name": "bad", "kind": "configmaps", "causes": [{"message": message}]},
        })
    );
}

#[rstest]
#[case(json!({"expression": "false", "reason": "Forbidden"}), 403, "failed expression: false")]
#[case(json!({"expression": "false", "messageExpression": "'no ' + object.metadata.name"}), 422, "no one")]
#[case(json!({"expression": "false", "message": "m", "messageExpression": "object.no.such"}), 422, "denied request: m")]
#[case(json!({"expression": "object.no.such"}), 422, "expression 'object.no.such' resulted in error: ")]
#[case(json!({"expression": "request.userInfo.username != 'admin'", "message": "nobody"}), 422, "nobody")]
#[case(json!({"expression": "request.operation == 'UPDATE' && oldObject != null", "message": "o"}), 422, "request: o")]
#[case(json!({"expression": "namespaceObject.metadata.name != 'ns'", "message": "there"}), 422, "there")]
#[tokio::test]
async fn a_validation_sees_the_request_and_says_why(#[case] validation: Value, #[case] code: u16, #[case] says: &str) {
    let (_, front) = fixture().await;
    bind(&front, &json!({"validations": [validation]}), &json!({})).await;
    let refused = put_map(&front, "one", &json!({})).await;
    assert_eq!(refused.code, code);
    let told = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(told.contains(says), "{told}");
}

/// Requests that don't match, or that can't be evaluated under `Ignore`.
#[rstest]
#[case(json!({"failurePolicy": "Ignore", "validations": [{"expression": "object.no.such"}]}), json!({}))]
#[case(json!({"matchConditions": [{"name": "n", "expression": "object.metadata.name == 'other'"}]}), json!({}))]
#[case(json!({"matchConstraints": {"resourceRules": [{
    "apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]}}), json!({}))]
#[case(json!({"matchConstraints": {"resourceRules": [{
    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE", "DELETE"], "resources": ["configmaps"]}]}}), json!({}))]
#[case(json!({"matchConstraints": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "resourceRules": [{
    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}]}}), json!({}))]
#[case(json!({}), json!({"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}))]
#[case(json!({}), json!({"policyName": "another"}))]
#[case(json!({}), json!({"validationActions": ["Audit"]}))]
#[tokio::test]
async fn others_are_let_through(#[case] of_policy: Value, #[case] of_binding: Value) {
    let (_, front) = fixture().await;
    let mut whole = json!({"validations": [{"expression": "false"}]});
    for (field, value) in of_policy.as_object().unwrap() {
        whole[field] = value.clone();
    }
    bind(&front, &whole, &of_binding).await;
    let made = put_map(&front, "one", &json!({})).await;
    assert_eq!(made.code, 201, "{}", made.json());
}

#[tokio::test]
async fn variables_are_evaluated_where_they_are_looked_at() {
    let (_, front) = fixture().await;
    let variables = json!([
        {"name": "broken", "expression": "object.no.such"},
        {"name": "name", "expression": "object.metadata.name"},
        {"name": "is_good", "expression": "variables.name == 'good'"},
    ]);
    let validations =
        json!([{"expression": "variables.is_good", "messageExpression": "variables.name + ' is not good'"}]);
    bind(&front, &json!({"variables": variables, "validations": validations}), &json!({})).await;
    assert_eq!(put_map(&front, "good", &json!({})).await.code, 201);
    let refused = put_map(&front, "bad", &json!({})).await;
    assert!(refused.json()["message"].as_str().unwrap().ends_with("bad is not good"));
}

#[tokio::test]
async fn every_selected_parameter_has_its_say() {
    let (_, front) = fixture().await;
    for (name, most) in [("one", "3"), ("two", "5")] {
        let mut params = map(name, &json!({"most": most}));
        params["metadata"]["labels"] = json!({"is": "param"});
        assert_eq!(post(&front, MAPS, &params).await.code, 201);
    }
    let of_policy = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.data.size <= params.data.most", "messageExpression": "'more than ' + params.data.most"}],
    });
    let selected =
        json!({"paramRef": {"selector": {"matchLabels": {"is": "param"}}, "parameterNotFoundAction": "Deny"}});
    bind(&front, &of_policy, &selected).await;
    assert_eq!(put_map(&front, "a", &json!({"size": "2"})).await.code, 201);
    let refused = put_map(&front, "b", &json!({"size": "4"})).await;
    assert!(refused.json()["message"].as_str().unwrap().ends_with("more than 3"));
}

#[rstest]
#[case("Deny", 422)]
#[case("Allow", 201)]
#[tokio::test]
async fn a_parameter_that_is_not_there(#[case] action: &str, #[case] code: u16) {
    let (_, front) = fixture().await;
    let of_policy = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "false"}],
    });
    bind(&front, &of_policy, &json!({"paramRef": {"name": "missing", "parameterNotFoundAction": action}})).await;
    assert_eq!(put_map(&front, "a", &json!({})).await.code, code);
}

#[tokio::test]
async fn who_only_warns_warns() {
    let (_, front) = fixture().await;
    let of_policy = json!({"validations": [{"expression": "false", "message": "rather not"}]});
    bind(&front, &of_policy, &json!({"validationActions": ["Warn"]})).await;
    let made = put_map(&front, "a", &json!({})).await;
    assert_eq!(made.code, 201);
    let warning = made.headers["warning"].to_str().unwrap();
    assert_eq!(
        warning,
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'rules' with binding 'bound': rather not\""
    );
}

#[tokio::test]
async fn deletions_are_judged_by_what_goes() {
    let (_, front) = fixture().await;
    let validations = json!([{"expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'kept'"}]);
    bind(&front, &json!({"validations": validations}), &json!({})).await;
    for name in ["kept", "other"] {
        assert_eq!(put_map(&front, name, &json!({})).await.code, 201);
    }
    assert_eq!(send(&front, "DELETE", &format!("{MAPS}/kept"), &[], b"").await.code, 422);
    assert_eq!(send(&front, "DELETE", &format!("{MAPS}/other"), &[], b"").await.code, 200);
    let policy = format!("{API}/validatingadmissionpolicies/rules");
    assert_eq!(send(&front, "DELETE", &policy, &[], b"").await.code, 200, "what judges can be taken away");
    assert_eq!(send(&front, "DELETE", &format!("{MAPS}/kept"), &[], b"").await.code, 200);
}

/// Compared with kube-apiserver 1.34: a request for a collection names no object, and each object
/// is validated.
#[rstest]
#[case::by_a_rule(json!(["kept"]), "true", 200)]
#[case::by_the_request(Value::Null, "request.name == 'kept'", 200)]
#[case::by_the_object(Value::Null, "oldObject.metadata.name == 'kept'", 422)]
#[tokio::test]
async fn a_collection_is_deleted_without_a_name(#[case] names: Value, #[case] condition: &str, #[case] code: u16) {
    let (_, front) = fixture().await;
    let mut rule = json!({
        "apiGroups": [""], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["configmaps"],
    });
    if names.is_array() {
        rule["resourceNames"] = names;
    }
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "n", "expression": condition}],
        "validations": [{"expression": "false"}],
    });
    bind(&front, &spec, &json!({})).await;
    for name in ["kept", "other"] {
        assert_eq!(put_map(&front, name, &json!({})).await.code, 201);
    }
    assert_eq!(send(&front, "DELETE", &format!("{MAPS}/kept"), &[], b"").await.code, 422);
    assert_eq!(send(&front, "DELETE", MAPS, &[], b"").await.code, code);
}

#[tokio::test]
async fn a_policy_that_does_not_compile_is_refused() {
    let (_, front) = fixture().await;
    let wrong = policy(&json!({"validations": [{"expression": "object.("}]}));
    let refused = post(&front, &format!("{API}/validatingadmissionpolicies"), &wrong).await;
    assert_eq!(refused.code, 422);
    let told = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(
        told.contains("spec.validations[0].expression: Invalid value: \"object.(\": compilation failed: "),
        "{told}"
    );
}

/// A patch as Helm sends it when one of several conditions has changed.
#[tokio::test]
async fn conditions_and_variables_are_merged_by_name() {
    let (_, front) = fixture().await;
    let named = json!([{"name": "a", "expression": "true"}, {"name": "b", "expression": "true"}]);
    bind(&front, &json!({"matchConditions": named, "variables": named}), &json!({})).await;
    let order = json!([{"name": "a"}, {"name": "b"}]);
    let change = json!([{"name": "a", "expression": "false"}]);
    let patch = json!({"spec": {
        "$setElementOrder/matchConditions": order, "matchConditions": change,
        "$setElementOrder/variables": order, "variables": change,
    }});
    let how = [("content-type", "application/strategic-merge-patch+json")];
    let path = format!("{API}/validatingadmissionpolicies/rules");
    let patched = send(&front, "PATCH", &path, &how, patch.to_string().as_bytes()).await;
    assert_eq!(patched.code, 200, "{}", patched.json());
    let expected = json!([{"name": "a", "expression": "false"}, {"name": "b", "expression": "true"}]);
    for list in ["matchConditions", "variables"] {
        assert_eq!(patched.json()["spec"][list], expected, "{list}");
    }
}
