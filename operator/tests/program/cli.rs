//! The command line of the built binary: its output and its exit codes (spec §5).

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Runs the binary in an empty environment, without a cluster's variables and without a kubeconfig.
fn stowage(args: &[&str]) -> Output {
    stowage_with(args, &[])
}

fn stowage_with(args: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stowage-operator"))
        .args(args)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .expect("the binary was built for this test")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is text")
}

/// Returns each `--flag` of a command except `--help`, with its paragraph in `--help`.
fn flags_of(command: &str) -> Vec<(String, String)> {
    let mut flags: Vec<(String, String)> = Vec::new();
    for line in stdout(&stowage(&[command, "--help"])).lines() {
        let words = line.trim_start();
        let is_short = |words: &str| words.starts_with('-') && words[2..].starts_with(", ");
        if let Some(start) = words.find("--").filter(|start| *start == 0 || (*start == 4 && is_short(words))) {
            let flag = words[start..].split_whitespace().next().expect("it starts with --");
            flags.push((flag.to_owned(), String::new()));
        }
        if let Some((_, text)) = flags.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    flags.retain(|(flag, _)| flag != "--help");
    flags
}

#[test]
fn help_names_the_commands() {
    let help = stowage(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let text = stdout(&help);
    for command in ["run", "plan", "why", "crds"] {
        assert!(
            text.lines().any(|line| line.trim_start().starts_with(&format!("{command} "))),
            "{command} in:\n{text}"
        );
    }
}

#[test]
fn help_of_run_is_in_groups() {
    let help = stowage(&["run", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    let text = stdout(&help);
    let headings: Vec<&str> = text.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
    for group in ["Cluster:", "Gateway:", "Limits:", "Process:"] {
        assert!(headings.contains(&group), "{group} in {headings:?}");
    }
}

#[test]
fn each_flag_is_an_environment_variable_too() {
    for (flag, text) in ["run", "plan", "why"].into_iter().flat_map(|command| {
        let flags = flags_of(command);
        assert!(flags.iter().any(|(flag, _)| flag == "--gateway-endpoint"), "the help could be read: {flags:?}");
        flags
    }) {
        let variable = format!("STOWAGE_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase());
        // Lines may be wrapped anywhere.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("[env: {variable}=")), "{variable} in:\n{text}");
    }
}

#[test]
fn defaults_stand_in_the_help_as_in_the_contract() {
    let expected = [
        ("--gateway-region", "us-east-1"),
        ("--gateway-addressing-style", "path"),
        ("--max-concurrent-reconciles", "16"),
        ("--max-upstream-calls", "32"),
        ("--upstream-timeout", "30"),
        ("--resync-interval", "600"),
        ("--admin-address", "[::]:8080"),
        ("--log-format", "text"),
    ];
    let flags = flags_of("run");
    for (flag, default) in expected {
        let text = flags.iter().find(|(name, _)| name == flag).map(|(_, text)| text.as_str()).unwrap_or_default();
        assert!(text.contains(&format!("[default: {default}]")), "{flag} in:\n{text}");
    }
}

#[test]
fn run_without_a_gateway_is_wrong_usage() {
    let output = stowage(&["run"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--gateway-endpoint"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_wrong_value_is_refused_with_what_was_expected_also_from_the_environment() {
    let gateway = ("STOWAGE_GATEWAY_ENDPOINT", "http://gateway.example");
    for (variable, value, expected) in [
        ("STOWAGE_GATEWAY_ENDPOINT", "gateway.example", "not a URL"),
        ("STOWAGE_UPSTREAM_TIMEOUT", "0", "1..=300"),
        ("STOWAGE_LOG_FORMAT", "xml", "text, json"),
    ] {
        let output = stowage_with(&["run"], &[gateway, (variable, value)]);
        assert_eq!(output.status.code(), Some(2), "{variable}={value}");
        assert!(stderr(&output).contains(expected), "{variable}={value}: {}", stderr(&output));
    }
}

/// The flags of a running operator can be passed to `plan` as they are.
#[test]
fn plan_and_why_take_what_the_operator_is_told_by_the_same_names() {
    let of_run: Vec<String> = flags_of("run").into_iter().map(|(flag, _)| flag).collect();
    // These don't affect the next step.
    let apart = ["--read-only", "--leader-elect", "--resync-interval", "--admin-address", "--log-format"];
    for command in ["plan", "why"] {
        let flags: Vec<String> = flags_of(command).into_iter().map(|(flag, _)| flag).collect();
        for flag in of_run.iter().filter(|flag| !apart.contains(&flag.as_str())) {
            assert!(flags.contains(flag), "{command} has no {flag}: {flags:?}");
        }
    }
}

// covers: 5.plan.exit
#[test]
fn the_exit_codes_of_plan_stand_in_its_help_and_wrong_usage_is_none_that_answers() {
    let help = stdout(&stowage(&["plan", "--help"]));
    assert!(help.contains("0 there is nothing to do, 2 there is something, 1 something failed"), "{help}");
    for wrong in [&["plan", "--no-such-flag"][..], &["why"], &["plan", "-o", "yaml"]] {
        let output = stowage(wrong);
        assert_eq!(output.status.code(), Some(1), "{wrong:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("Usage:") || stderr(&output).contains("possible values"));
    }
    for (args, why) in
        [(&["plan", "photos"][..], "in which namespace is claim photos"), (&["plan"], "not in a cluster")]
    {
        let output = stowage(args);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
    assert_eq!(stowage(&["run", "--no-such-flag"]).status.code(), Some(2), "there it is as everywhere");
}

#[test]
fn plan_takes_the_kubeconfig_that_kubectl_takes() {
    let home = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("home");
    fs::create_dir_all(home.join(".kube")).expect("a place for test files");
    fs::write(home.join(".kube/config"), "apiVersion: v1\nkind: Config\nusers: hush-hush\n").expect("there is room");
    let output = stowage_with(&["plan"], &[("HOME", home.to_str().expect("the target directory is text"))]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("line 3"), "{}", stderr(&output));
    let none = home.join("none").display().to_string();
    let output = stowage_with(&["plan"], &[("HOME", home.to_str().unwrap()), ("KUBECONFIG", &none)]);
    assert!(stderr(&output).contains("not in a cluster"), "{}", stderr(&output));
}

#[test]
fn as_a_plugin_of_kubectl_it_says_how_it_is_called() {
    let plugin = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubectl-stowage");
    let _ = fs::remove_file(&plugin);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_stowage-operator"), &plugin).expect("there is room");
    let output = Command::new(&plugin).args(["plan", "--help"]).env_clear().output().expect("it leads to the binary");
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("Usage: kubectl stowage plan"), "{}", stdout(&output));
}

#[test]
fn run_outside_of_a_cluster_fails_with_one_sentence() {
    let output = stowage(&["run", "--gateway-endpoint", "http://gateway.example"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("stowage-operator: not in a cluster"), "{said}");
    assert!(said.contains("--kubeconfig"), "{said}");
}

#[test]
fn run_with_a_kubeconfig_that_is_not_there_names_the_file() {
    let output =
        stowage(&["run", "--gateway-endpoint", "http://gateway.example", "--kubeconfig", "/nonexistent/config"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("/nonexistent/config"), "{said}");
}

#[test]
fn a_broken_kubeconfig_is_not_quoted() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-kubeconfig");
    std::fs::write(&path, "apiVersion: v1\nkind: Config\nusers: hush-hush\n").expect("a place for test files");
    let kubeconfig = path.to_str().expect("the target directory is text");
    let output = stowage(&["run", "--gateway-endpoint", "http://gateway.example", "--kubeconfig", kubeconfig]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("line 3"), "{said}");
    assert!(!said.contains("hush"), "{said}");
}

#[test]
fn crds_prints_the_definitions_and_nothing_else() {
    let output = stowage(&["crds"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
    let text = stdout(&output);
    assert_eq!(text, stowage_operator::crds_yaml().expect("the CRDs can be written as YAML"));
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).expect("YAML documents");
    let names: Vec<&str> = documents.iter().filter_map(|document| document["metadata"]["name"].as_str()).collect();
    let plurals = ["bucketclaims", "s3backends", "bucketaccesses"];
    assert_eq!(names, plurals.map(|plural| format!("{plural}.broker.stowage.io")));
    assert!(documents.iter().all(|document| document["kind"] == "CustomResourceDefinition"));
}

/// No pass is running yet, so nothing has to be waited for.
#[test]
fn an_operator_that_is_told_to_stop_while_it_starts_ends_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let kubeconfig = std::env::temp_dir().join(format!("stowage-silent-{}", std::process::id()));
    let server = format!("http://{}", silent.local_addr().expect("it is bound"));
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: it\n\
         clusters: [{{name: it, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: it, user: {{}}}}]\ncontexts: [{{name: it, context: {{cluster: it, user: it}}}}]\n"
    );
    fs::write(&kubeconfig, text).expect("there is room");
    let mut operator = Command::new(env!("CARGO_BIN_EXE_stowage-operator"))
        .args(["run", "--gateway-endpoint", "http://gateway.example", "--admin-address", "127.0.0.1:0", "--kubeconfig"])
        .arg(&kubeconfig)
        .spawn()
        .expect("the binary was built for this test");
    // It has sent a request, and gets no answer.
    let _asked = silent.accept().expect("it asks the server");
    let told = Instant::now();
    let kill = Command::new("kill").args(["-TERM", &operator.id().to_string()]).status().expect("there is kill");
    assert!(kill.success());
    let ended = operator.wait().expect("it is our child");
    fs::remove_file(&kubeconfig).expect("it is there");
    assert_eq!(ended.code(), Some(0));
    assert!(told.elapsed() < Duration::from_secs(8), "it ended after {:?}", told.elapsed());
}
