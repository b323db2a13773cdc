use std::sync::Arc;

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::backend::AddressingStyle;
use crate::identity::ClaimUid;
use crate::names::Endpoint;

fn parse(raw: serde_json::Value) -> Result<SecretShape, InvalidSpec> {
    let raw: SecretTemplate = serde_json::from_value(raw).expect("it is of the schema");
    SecretShape::parse(Some(&raw))
}

fn gateway() -> Gateway {
    Gateway {
        endpoint: Endpoint::parse("https://s3.example:8443").unwrap(),
        region: "eu".into(),
        addressing_style: AddressingStyle::Path,
        ca: Some(Arc::from("PEM")),
    }
}

fn rendered(data: serde_json::Value, buckets: &[&str]) -> Result<Extra, TooLarge> {
    let buckets: Vec<BucketName> = buckets.iter().map(|name| BucketName::parse(name).unwrap()).collect();
    let uid = ClaimUid::new("u");
    let (id, secret, gateway) = (AccessKeyId::of(&uid, 1), SecretKey::new("s3cr3t".into()), gateway());
    let values = SecretValues { id: &id, secret: &secret, buckets: &buckets, gateway: &gateway };
    parse(json!({ "data": data })).unwrap().render(values)
}

// covers: 10.fields, 10.data
#[test]
fn every_field_stands_for_what_it_says() {
    let all = "{{ .SecretAccessKey }} {{.Bucket}} {{ .Buckets}} {{ .Endpoint }} {{ .Host }} {{ .Port }} {{ .Region }} \
               {{ .AddressingStyle }} {{ .CABundle }} } }} { {";
    let text = |buckets: &[&str]| {
        let extra = rendered(json!({ "all": all, "id": "{{ .AccessKeyId }}" }), buckets).unwrap();
        assert!(extra.data["id"].starts_with(b"AKIA"));
        String::from_utf8(extra.data["all"].clone()).unwrap()
    };
    let rest = "https://s3.example:8443 s3.example 8443 eu path PEM } }} { {";
    assert_eq!(text(&["photos"]), format!("s3cr3t photos photos {rest}"));
    assert_eq!(text(&["photos", "films"]), format!("s3cr3t  photos,films {rest}"), "several have no one name");
}

// covers: 10.fields, 10.own, 10.labels, 10.annotations, 10.data, 10.omitDefaults
#[rstest]
#[case(json!({"data": {"a": "{{ .Claim }}"}}), "is none of .AccessKeyId")]
#[case(json!({"data": {"a": "x{{ .Bucket"}}), "{{ at 1 is not closed")]
#[case(json!({"data": {"a": "{{- .Bucket }}"}}), "is none of")]
#[case(json!({"data": {"a": "{{ .Bucket | b64enc }}"}}), "is none of")]
#[case(json!({"data": {"a": "{{ range .Buckets }}"}}), "is none of")]
#[case(json!({"data": {"AWS_ACCESS_KEY_ID": "x"}}), "is written by the operator")]
#[case(json!({"data": {"uri": "x"}}), "is written by the operator")]
#[case(json!({"data": {"ca.crt": "x"}}), "is written by the operator")]
#[case(json!({"data": {"..": "x"}}), "is no key of a Secret")]
#[case(json!({"data": {"a/b": "x"}}), "is no key of a Secret")]
#[case(json!({"data": {"": "x"}}), "is no key of a Secret")]
#[case(json!({"data": {"a": "x".repeat(4097)}}), "4096 are the most")]
#[case(json!({"data": (0..33).map(|n| (n.to_string(), "")).collect::<BTreeMap<_, _>>()}), "more than 32 keys")]
#[case(json!({"data": (0..20).map(|n| (format!("{n:0>250}"), "")).collect::<BTreeMap<_, _>>()}), "4096 bytes together")]
#[case(json!({"omitDefaults": true, "labels": {"a": "b"}}), "data has to say what stands there")]
#[case(json!({"labels": {"broker.stowage.io/role": "x"}}), "is the operator's")]
#[case(json!({"labels": {"a": "no label"}}), "can't stand there")]
#[case(json!({"labels": {"-a": "x"}}), "is no name of")]
#[case(json!({"labels": {"UPPER.example/a": "x"}}), "is no name of")]
#[case(json!({"annotations": {"a": "x".repeat(257)}}), "can't stand there")]
fn what_can_not_be_is_refused_with_why(#[case] raw: serde_json::Value, #[case] why: &str) {
    let error = parse(raw).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

// covers: 10.labels
#[test]
fn who_runs_the_operator_says_what_labels_and_annotations_begin_with() {
    let shape =
        parse(json!({"labels": {"app.kubernetes.io/name": "a"}, "annotations": {"example.com/b": "any thing"}}));
    let shape = shape.unwrap();
    let forbidden = |allowed: &[&str]| {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        shape.forbidden(&allowed).map(str::to_owned)
    };
    assert_eq!(forbidden(&[]), Some("app.kubernetes.io/name".to_owned()));
    assert_eq!(forbidden(&["app.kubernetes.io/"]), Some("example.com/b".to_owned()));
    assert_eq!(forbidden(&["app.kubernetes.io/", "example.com/"]), None);
}

// covers: 10.size
#[test]
fn what_would_be_too_large_is_known_before_it_is_made() {
    let names: Vec<String> = (0..64).map(|number| format!("{number:0>63}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let most = "{{.Buckets}}".repeat(341);
    assert_eq!(rendered(json!({ "a": most }), &names), Err(TooLarge { size: 341 * (64 * 64 - 1) }));
    let fits = "{{.Buckets}}".repeat(64);
    assert_eq!(rendered(json!({ "a": fits }), &names).map(|extra| extra.data["a"].len()), Ok(64 * (64 * 64 - 1)));
}

// covers: 10.written
#[test]
fn the_annotation_tells_the_names_and_none_of_ours() {
    let names = Written {
        labels: ["example.com/a".to_owned()].into(),
        annotations: BTreeSet::new(),
        data: ["config".to_owned(), "AWS_REGION".to_owned()].into(),
    };
    let told = |text: &str| {
        let mut secret = Secret::default();
        secret.metadata.annotations = Some([(wire::TEMPLATE.to_owned(), text.to_owned())].into());
        Written::of(&secret)
    };
    let kept = Written { data: ["config".to_owned()].into(), ..names.clone() };
    assert_eq!(told(&names.text()), kept);
    for other in ["", "[]", r#"{"data": {}}"#, r#"{"finalizers": ["a"]}"#, &"x".repeat(1 << 20)] {
        assert_eq!(told(other), Written::default(), "{other:.20}");
    }
}

/// If the annotation exceeded its bound, it would be ignored when read, and written again in every
/// reconciliation.
// covers: 10.written
#[test]
fn the_most_that_a_template_may_ask_for_is_told_in_whole() {
    let keys = |kind: &str| (0..32).map(|n| (format!("{kind}{n:0>41}"), "x".to_owned())).collect::<BTreeMap<_, _>>();
    let raw = json!({ "labels": keys("l"), "annotations": keys("a"), "data": keys("d") });
    let shape = parse(raw).expect("4032 bytes of names");
    let publishing = super::super::Publishing { service_binding: true, ..Default::default() };
    let shaped = super::super::Shaped { publishing: &publishing, shape: &shape };
    let uid = ClaimUid::new("u");
    let (id, secret, gateway) = (AccessKeyId::of(&uid, 1), SecretKey::new("s3cr3t".into()), gateway());
    let names =
        shaped.extra(SecretValues { id: &id, secret: &secret, buckets: &[], gateway: &gateway }).unwrap().names();
    assert_eq!(names.data.len(), 32 + 7);
    // The rest of the bound on names could be used by the template too.
    assert!(names.text().len() + (SecretShape::LONGEST_NAMES - 96 * 42) < Written::LONGEST);
    let mut told = Secret::default();
    told.metadata.annotations = Some([(wire::TEMPLATE.to_owned(), names.text())].into());
    assert_eq!(Written::of(&told), names);
}

// covers: 10.binding.keys, 10.ca, 10.omitDefaults
#[test]
fn the_keys_of_service_binding_and_the_authorities_are_there_where_they_are_wanted() {
    let buckets = [BucketName::parse("photos").unwrap()];
    let uid = ClaimUid::new("u");
    let (id, secret) = (AccessKeyId::of(&uid, 1), SecretKey::new("s3cr3t".into()));
    let keys = |service_binding: bool, ca: Option<&str>| {
        let gateway = Gateway { ca: ca.map(Arc::from), ..gateway() };
        let publishing = super::super::Publishing { service_binding, ..Default::default() };
        let shaped = super::super::Shaped { publishing: &publishing, shape: &SecretShape::default() };
        let values = SecretValues { id: &id, secret: &secret, buckets: &buckets, gateway: &gateway };
        let data = shaped.extra(values).unwrap().data;
        data.into_iter().map(|(key, value)| format!("{key}={}", String::from_utf8(value).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(keys(false, None), [] as [&str; 0]);
    assert_eq!(keys(false, Some("PEM")), ["ca.crt=PEM"]);
    let own = ["host=s3.example", "port=8443", "provider=stowage", "type=s3", "uri=https://s3.example:8443/photos"];
    assert_eq!(keys(true, None), own);
    assert_eq!(keys(true, Some("PEM")), [&["ca.crt=PEM", "certificates=PEM"], &own[..]].concat());
}
