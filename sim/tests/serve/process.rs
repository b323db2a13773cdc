//! Tests of `stowage-sim serve` as a process: its output, and its end.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use crate::parts::{ACCESS_KEY, ACCOUNT, Parts, SECRET_KEY, client_with, soon};

fn serve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stowage-sim"));
    command.arg("serve").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a process and reads the URLs of its parts, which it prints as `PART=URL`.
fn started(arguments: &[&str]) -> (Child, Vec<(String, String)>) {
    let mut child = serve(arguments).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it speaks");
    let words = line.trim().strip_prefix("ready ").unwrap_or_else(|| panic!("not ready: {line}"));
    let served = words.split(' ').filter_map(|word| word.split_once('=')).map(|(what, url)| (what.into(), url.into()));
    (child, served.collect())
}

fn terminated(child: Child) -> Output {
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("there is kill");
    assert!(sent.success());
    child.wait_with_output().expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_says_where_it_is_and_ends_when_told() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("requests.jsonl");
    let arguments = ["store", "--address", "127.0.0.1:0", "--access-key", "A", "--secret-key", "s", "--request-log"];
    let (child, served) = started(&[&arguments[..], &[log.to_str().unwrap()]].concat());
    let [(what, url)] = &served[..] else { panic!("{served:?}") };
    assert_eq!(what, "store");
    soon(client_with(url, "A", "s").create_bucket().bucket("photos").send()).await.unwrap();
    assert_eq!(terminated(child).status.code(), Some(0));
    let lines = std::fs::read_to_string(log).unwrap();
    let seen: serde_json::Value = serde_json::from_str(lines.trim()).expect("one line of JSON");
    assert_eq!(
        (seen["who"].as_str(), seen["operation"].as_str(), seen["status"].as_u64()),
        (Some("A"), Some("CreateBucket"), Some(200))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_given_its_cluster_by_a_kubeconfig_and_its_faults_by_a_plan() {
    let parts = Parts::new("").await;
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: '{}'}}}}], \
         users: [], contexts: [{{name: c, context: {{cluster: c, user: ''}}}}]}}",
        parts.kube.url()
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let addresses = ["--kube-address", "127.0.0.1:0", "--s3-address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0"];
    let stored = parts.stored.url();
    parts.store.add_account(ACCOUNT, "AKIANEIGHBOUR", "neighbour-secret");
    let own = ["proxy", "--kubeconfig", kubeconfig.to_str().unwrap(), "--store", &stored];
    let own = [&own[..], &["--unnumbered-key", "AKIANEIGHBOUR"]].concat();
    let (child, served) = started(&[&own[..], &addresses, &["--plan", "s3:CreateBucket@1 slow-down"]].concat());
    let names: Vec<&str> = served.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(names, ["kube", "s3", "admin"]);
    let neighbour = client_with(&served[1].1, "AKIANEIGHBOUR", "neighbour-secret");
    soon(neighbour.create_bucket().bucket("theirs").send()).await.expect("the fault is not for a neighbour");
    let s3 = client_with(&served[1].1, ACCESS_KEY, SECRET_KEY);
    soon(s3.create_bucket().bucket("photos").send()).await.expect_err("it is refused");
    soon(s3.create_bucket().bucket("photos").send()).await.expect("once");
    assert_eq!(terminated(child).status.code(), Some(0));
}

#[test]
fn a_plan_that_cant_happen_is_refused_at_the_start() {
    let output = serve(&["proxy", "--store", "http://127.0.0.1:1", "--plan", "s3:GetBucketTagging vanish"]).output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("stowage-sim: vanish can't be made to happen"), "{said}");
}
