//! Tests of the validation and defaults of webhook configurations.

use rstest::rstest;
use serde_json::{Value, json};

use super::Bench;

#[rstest]
#[case(json!({"name": "short.org"}),
    "webhooks[0].name: Invalid value: \"short.org\": should be a domain with at least three segments separated by dots")]
#[case(json!({"sideEffects": "Some"}),
    "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"")]
#[case(json!({"sideEffects": ""}), "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun")]
#[case(json!({"failurePolicy": "Maybe"}),
    "webhooks[0].failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"")]
#[case(json!({"timeoutSeconds": 31}),
    "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds")]
#[case(json!({"clientConfig": {}}), "webhooks[0].clientConfig: Required value: exactly one of url or service is required")]
#[case(json!({"clientConfig": {"url": "http://a.b"}}),
    "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]")]
#[case(json!({"clientConfig": {"url": "https://a.b/?c=d"}}),
    "webhooks[0].clientConfig.url: Invalid value: \"c=d\": query parameters are not permitted in the URL")]
#[case(json!({"admissionReviewVersions": []}), "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1")]
#[case(json!({"admissionReviewVersions": ["v9"]}),
    "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1")]
#[case(json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["READ"]}]}),
    "webhooks[0].rules[0].operations[0]: Unsupported value: \"READ\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"")]
#[case(json!({"rules": [{"apiGroups": ["", "*"], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"]}]}),
    "webhooks[0].rules[0].apiGroups: Invalid value: [\"\",\"*\"]: if '*' is present, must not specify other API groups")]
#[case(json!({"matchConditions": [{"name": "n", "expression": "object.("}]}),
    "webhooks[0].matchConditions[0].expression: Invalid value: \"object.(\": compilation failed: ")]
#[tokio::test]
async fn a_configuration_is_refused_for(
    #[values("Mutating", "Validating")] sort: &str,
    #[case] webhook: Value,
    #[case] says: &str,
) {
    let bench = Bench::saying(json!({})).await;
    let refused = bench.try_to_configure(sort, "first", &webhook).await;
    assert_eq!(refused.code, 422, "{}", refused.json());
    let expected = format!("{sort}WebhookConfiguration.admissionregistration.k8s.io \"first\" is invalid: {says}");
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with(&expected), "{message}");
}

#[tokio::test]
async fn what_a_configuration_leaves_out_is_filled_in() {
    let bench = Bench::saying(json!({})).await;
    let service = json!({"service": {"name": "s", "namespace": "n"}});
    let made = bench.try_to_configure("Mutating", "first", &json!({"clientConfig": service})).await;
    let webhook = &made.json()["webhooks"][0];
    for (field, value) in [
        ("failurePolicy", json!("Fail")),
        ("matchPolicy", json!("Equivalent")),
        ("namespaceSelector", json!({})),
        ("objectSelector", json!({})),
        ("reinvocationPolicy", json!("Never")),
        ("timeoutSeconds", json!(10)),
    ] {
        assert_eq!(webhook[field], value, "{field}");
    }
    assert_eq!(
        (&webhook["rules"][0]["scope"], &webhook["clientConfig"]["service"]["port"]),
        (&json!("*"), &json!(443))
    );
}
