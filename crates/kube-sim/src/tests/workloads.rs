//! ConfigMaps, ServiceAccounts, Pods, Services and Deployments: defaults, validation, and lists
//! merged by key.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt as _};
use rstest::rstest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;

fn api<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(f: &Fixture) -> Api<K> {
    Api::namespaced(f.client.clone(), "ns")
}

async fn create<K>(f: &Fixture, value: Value) -> Result<K, kube::Error>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(value).expect("an object of the kind");
    api(f).create(&PostParams::default(), &object).await
}

fn merge(value: Value) -> Patch<Value> {
    Patch::Merge(value)
}

fn pod(spec: &Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": spec})
}

fn deployment(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1.29"}]},
            },
        },
    });
    change(&mut value);
    value
}

#[tokio::test]
async fn keys_and_size_of_a_config_map() {
    let f = Fixture::new().await;
    let both = json!({"metadata": {"name": "c"}, "data": {"a": "1"}, "binaryData": {"a": "MQ=="}});
    let status = refused(create::<ConfigMap>(&f, both).await);
    assert_eq!(fields(&status), ["data[a]", "binaryData[a]"]);
    assert!(status.message.contains("duplicate of key present in binaryData"), "{}", status.message);
    let large = json!({"metadata": {"name": "c"}, "data": {"a": "x".repeat(1024 * 1024 + 1)}});
    let status = refused(create::<ConfigMap>(&f, large).await);
    assert_eq!(status.message, r#"ConfigMap "c" is invalid: []: Too long: may not be more than 1048576 bytes"#);
    let made: ConfigMap = create(&f, json!({"metadata": {"name": "c"}, "data": {}})).await.expect("created");
    assert_eq!((made.data, made.metadata.generation), (None, None));
}

#[tokio::test]
async fn an_immutable_config_map_stays() {
    let f = Fixture::new().await;
    let made = json!({"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": true});
    create::<ConfigMap>(&f, made).await.expect("created");
    let maps = api::<ConfigMap>(&f);
    for (patch, field) in [
        (json!({"data": {"a": "2"}}), "data"),
        (json!({"binaryData": {"b": "MQ=="}}), "binaryData"),
        (json!({"immutable": null}), "immutable"),
    ] {
        let status = refused(maps.patch("c", &PatchParams::default(), &merge(patch)).await);
        assert_eq!(fields(&status), [field]);
    }
    maps.patch("c", &PatchParams::default(), &merge(json!({"metadata": {"labels": {"a": "b"}}})))
        .await
        .expect("a label");
}

#[rstest]
#[case::dropped_with_a_warning(None, true)]
#[case::refused(Some(ValidationDirective::Strict), false)]
#[tokio::test]
async fn unknown_fields_deep_in_a_pod(#[case] validation: Option<ValidationDirective>, #[case] accepted: bool) {
    let f = Fixture::new().await;
    let object = object(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "livenessProbe": {"httpGet": {"port": 1, "verb": "GET"}}}]},
    }));
    let kind = ApiResource::erase::<Pod>(&());
    let pods: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "ns", &kind);
    let params = PatchParams { field_validation: validation, ..PatchParams::default() };
    // kube has no field validation for creates, so the stored pod is patched with the option.
    let made = pods.create(&PostParams::default(), &object).await.expect("created");
    let probe = &made.data["spec"]["containers"][0]["livenessProbe"];
    assert_eq!(probe["httpGet"], json!({"port": 1, "path": "/", "scheme": "HTTP"}));
    let patch = merge(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"hostName": "h"}}));
    match pods.patch("p", &params, &patch).await {
        Ok(_) => assert!(accepted),
        refusal => {
            let status = refused(refusal);
            assert!(!accepted && status.message.contains(r#"unknown field "spec.hostName""#), "{}", status.message);
        }
    }
}

#[tokio::test]
async fn a_new_pod_is_pending_and_has_its_defaults() {
    let f = Fixture::new().await;
    let spec = json!({
        "serviceAccountName": "robot", "volumes": [{"name": "v"}],
        "containers": [{
            "name": "c", "image": "nginx", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }],
    });
    let mut sent = pod(&spec);
    sent["status"] = json!({"phase": "Running"});
    let made: Pod = create(&f, sent).await.expect("created");
    let made = serde_json::to_value(made).expect("JSON");
    let spec = &made["spec"];
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("enableServiceLinks", json!(true)),
        ("securityContext", json!({})),
        ("serviceAccount", json!("robot")),
        ("volumes", json!([{"name": "v", "emptyDir": {}}])),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    let container = &spec["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Always", "a name without tag is the latest");
    assert_eq!(container["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]));
    assert_eq!(container["resources"], json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}));
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "Burstable"}));
    assert_eq!(made["metadata"]["generation"], 1);
    let pending = ListParams::default().fields("status.phase=Pending,spec.restartPolicy=Always");
    assert_eq!(api::<Pod>(&f).list(&pending).await.expect("a list").items.len(), 1);
    let gone = api::<Pod>(&f).delete("p", &DeleteParams::default()).await.expect("deleted");
    assert!(gone.is_right(), "no kubelet has to stop it");
}

#[rstest]
#[case::no_container(json!({"containers": []}), &["spec.containers"])]
#[case::no_image(json!({"containers": [{"name": "c"}]}), &["spec.containers[0].image"])]
#[case::no_name(json!({"containers": [{"image": "i"}]}), &["spec.containers[0].name"])]
#[case::a_name_twice(
    json!({"containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "c", "image": "i"}]}),
    &["spec.initContainers[0].name"]
)]
#[case::no_such_volume(
    json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}),
    &["spec.containers[0].volumeMounts[0].name"]
)]
#[case::ports(
    json!({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 65_536, "protocol": "ICMP"}]}]}),
    &["spec.containers[0].ports[0].containerPort", "spec.containers[0].ports[0].protocol"]
)]
#[case::restarts(json!({"restartPolicy": "Ever", "containers": [{"name": "c", "image": "i"}]}), &["spec.restartPolicy"])]
#[tokio::test]
async fn a_pod_that_breaks_a_rule_is_refused(#[case] spec: Value, #[case] expected: &[&str]) {
    let f = Fixture::new().await;
    // The typed objects set missing fields. The untyped object leaves them to the server's
    // validation.
    let sent = object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}));
    let kind = ApiResource::erase::<Pod>(&());
    let pods: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "ns", &kind);
    let status = refused(pods.create(&PostParams::default(), &sent).await);
    assert_eq!((status.code, fields(&status)), (422, expected.iter().map(|it| (*it).to_owned()).collect()));
}

#[tokio::test]
async fn of_a_pod_little_more_than_images_can_change() {
    let f = Fixture::new().await;
    let spec = json!({"containers": [{"name": "c", "image": "one", "env": []}], "nodeSelector": {}});
    create::<Pod>(&f, pod(&spec)).await.expect("created");
    let pods = api::<Pod>(&f);
    let params = PatchParams::default();
    let patch = json!({"spec": {"containers": [{"name": "c", "image": "two"}]}});
    let changed = pods.patch("p", &params, &Patch::Strategic(patch)).await.expect("another image");
    assert_eq!(changed.metadata.generation, Some(2));
    assert_eq!(changed.status.and_then(|status| status.phase).as_deref(), Some("Pending"));
    let same = pods.patch("p", &params, &merge(json!({"spec": {"nodeSelector": {}}}))).await.expect("no change");
    assert_eq!(same.metadata.generation, Some(2));
    let status = refused(pods.patch("p", &params, &merge(json!({"spec": {"hostname": "h"}}))).await);
    assert_eq!(fields(&status), ["spec"]);
    assert!(status.message.contains("pod updates may not change fields other than"), "{}", status.message);
    let ran = pods.patch_status("p", &params, &merge(json!({"status": {"phase": "Running"}}))).await.expect("it runs");
    assert_eq!(ran.status.and_then(|status| status.phase).as_deref(), Some("Running"));
}

/// Two appliers own a container and a port each, and each removes only its own.
#[tokio::test]
async fn containers_ports_and_variables_are_merged_by_their_keys() {
    let f = Fixture::new().await;
    let with = |containers: Value| deployment(|it| it["spec"]["template"]["spec"]["containers"] = containers);
    let port = |name: &str, protocol: &str| json!({"name": name, "containerPort": 53, "protocol": protocol});
    let one = with(
        json!([{"name": "c", "image": "i:1", "ports": [port("tcp", "TCP")], "env": [{"name": "A", "value": "1"}]}]),
    );
    let two = with(json!([
        {"name": "c", "ports": [port("udp", "UDP")], "env": [{"name": "B", "value": "2"}]}, {"name": "side", "image": "s:1"},
    ]));
    let deployments = api::<Deployment>(&f);
    deployments.patch("d", &PatchParams::apply("one"), &Patch::Apply(&one)).await.expect("created");
    let merged = deployments.patch("d", &PatchParams::apply("two"), &Patch::Apply(&two)).await.expect("merged");
    let names = |merged: &Deployment| {
        let template = merged.spec.clone().expect("a spec").template.spec.expect("a template");
        let containers = template.containers.into_iter();
        containers
            .map(|it| {
                let ports =
                    it.ports.unwrap_or_default().into_iter().filter_map(|port| port.protocol).collect::<Vec<_>>();
                let env = it.env.unwrap_or_default().into_iter().map(|variable| variable.name).collect::<Vec<_>>();
                format!("{} {} {}", it.name, ports.join(","), env.join(","))
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&merged), ["c TCP,UDP A,B", "side  "]);
    let less = with(json!([{"name": "c", "env": [{"name": "B", "value": "2"}]}]));
    let merged = deployments.patch("d", &PatchParams::apply("two"), &Patch::Apply(&less)).await.expect("merged");
    assert_eq!(names(&merged), ["c TCP A,B"]);
    let rival = with(json!([{"name": "c", "image": "i:2"}]));
    let status = refused(deployments.patch("d", &PatchParams::apply("two"), &Patch::Apply(&rival)).await);
    assert!(status.message.ends_with(r#".spec.template.spec.containers[name="c"].image"#), "{}", status.message);
}

#[tokio::test]
async fn a_deployment_has_its_defaults_and_counts_generations() {
    let f = Fixture::new().await;
    let made: Deployment = create(&f, deployment(|_| {})).await.expect("created");
    assert_eq!(made.metadata.generation, Some(1));
    let value = serde_json::to_value(&made).expect("JSON");
    assert_eq!((&value["spec"]["replicas"], &value["status"]), (&json!(1), &json!({})));
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    assert_eq!(value["spec"]["strategy"], rolling);
    let container = &value["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    let deployments = api::<Deployment>(&f);
    let params = PatchParams::default();
    for (patch, generation) in [
        (json!({"metadata": {"labels": {"a": "b"}}}), 1),
        (json!({"metadata": {"annotations": {"a": "b"}}}), 2),
        (json!({"spec": {"replicas": 2}}), 3),
        (json!({"status": {"replicas": 2}}), 3),
    ] {
        let changed = deployments.patch("d", &params, &merge(patch.clone())).await.expect("patched");
        assert_eq!(changed.metadata.generation, Some(generation), "{patch}");
    }
    let status =
        deployments.patch_status("d", &params, &merge(json!({"status": {"replicas": 2}}))).await.expect("status");
    assert_eq!(status.status.and_then(|status| status.replicas), Some(2));
}

#[rstest]
#[case::no_selector(|it: &mut Value| it["selector"] = Value::Null, "spec.selector")]
#[case::selects_nothing(|it: &mut Value| it["selector"] = json!({}), "spec.selector")]
#[case::selects_others(|it: &mut Value| it["selector"] = json!({"matchLabels": {"app": "x"}}), "spec.template.metadata.labels")]
#[case::selects_no_name(
    |it: &mut Value| it["selector"] = json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["d"]}]}),
    "spec.template.metadata.labels"
)]
#[case::less_than_none(|it: &mut Value| it["replicas"] = json!(-1), "spec.replicas")]
#[case::runs_once(|it: &mut Value| it["template"]["spec"]["restartPolicy"] = json!("Never"), "spec.template.spec.restartPolicy")]
#[tokio::test]
async fn a_deployment_that_breaks_a_rule_is_refused(#[case] change: fn(&mut Value), #[case] expected: &str) {
    let f = Fixture::new().await;
    let sent = object(deployment(|it| change(&mut it["spec"])));
    let kind = ApiResource::erase::<Deployment>(&());
    let deployments: Api<DynamicObject> = Api::namespaced_with(f.client.clone(), "ns", &kind);
    assert_eq!(fields(&refused(deployments.create(&PostParams::default(), &sent).await)), [expected]);
}

#[tokio::test]
async fn the_selector_of_a_deployment_is_immutable() {
    let f = Fixture::new().await;
    create::<Deployment>(&f, deployment(|_| {})).await.expect("created");
    let labels = json!({"app": "d", "tier": "x"});
    let patch = json!({"spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}},
    }});
    let status = refused(api::<Deployment>(&f).patch("d", &PatchParams::default(), &merge(patch)).await);
    let expected = r#"Deployment.apps "d" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"d","tier":"x"}}: field is immutable"#;
    assert_eq!(status.message, expected);
}

#[tokio::test]
async fn services_have_names_types_and_ports() {
    let f = Fixture::new().await;
    let service = |spec: Value| json!({"metadata": {"name": "s"}, "spec": spec});
    let made: Service = create(&f, service(json!({"ports": [{"port": 80}]}))).await.expect("created");
    let made = serde_json::to_value(made).expect("JSON");
    assert_eq!(
        made["spec"],
        json!({
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
        })
    );
    assert_eq!(made["status"], json!({"loadBalancer": {}}));
    for (spec, expected) in [
        (json!({}), "spec.ports"),
        (Value::Null, "spec.ports"),
        (json!({"ports": [{"port": 80}, {"port": 81, "name": "b"}]}), "spec.ports[0].name"),
        (json!({"ports": [{"port": 0}]}), "spec.ports[0].port"),
        (json!({"type": "ExternalName"}), "spec.externalName"),
        (json!({"type": "Odd", "ports": [{"port": 80}]}), "spec.type"),
    ] {
        let mut sent = service(spec);
        sent["metadata"]["name"] = "t".into();
        assert_eq!(fields(&refused(create::<Service>(&f, sent).await)), [expected]);
    }
    let numbered = json!({"metadata": {"name": "1s"}, "spec": {"ports": [{"port": 80}]}});
    let status = refused(create::<Service>(&f, numbered).await);
    assert!(status.message.contains("a DNS-1035 label must consist of"), "{}", status.message);
}

#[tokio::test]
async fn service_accounts_are_stored() {
    let f = Fixture::new().await;
    let made = json!({"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "registry"}]});
    let made: ServiceAccount = create(&f, made).await.expect("created");
    assert_eq!(made.image_pull_secrets.map(|secrets| secrets.len()), Some(1));
    let mut stated = api::<ServiceAccount>(&f).get("robot").await.expect("it is there");
    stated.metadata.resource_version = None;
    let status = refused(api::<ServiceAccount>(&f).replace("robot", &PostParams::default(), &stated).await);
    assert_eq!(fields(&status), ["metadata.resourceVersion"]);
    assert_eq!(stated.name_any(), "robot");
}
