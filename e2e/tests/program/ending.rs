//! A run on a control plane or kind cluster of its own leaves no process, no file and no cluster
//! behind, however it ends. The programs that it starts are stubs here, and none of them becomes
//! ready.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

/// A stub that writes its process id and keeps running.
const STAYS: &str = "#!/bin/sh\necho $$ > \"$PIDS/$(basename \"$0\")\"\nexec sleep 600\n";
/// A stub that writes its process id, and exits with an error once etcd runs.
const ENDS: &str = "#!/bin/sh\necho $$ > \"$PIDS/$(basename \"$0\")\"\nuntil [ -s \"$PIDS/etcd\" ]; do :; done\necho no luck >&2\nexit 7\n";
/// A stub that logs its arguments, and never finishes creating a cluster.
const KIND: &str = "#!/bin/sh\necho \"$@\" >> \"$PIDS/asked\"\n[ \"$1\" = create ] || exit 0\necho $$ > \"$PIDS/kind\"\nexec sleep 600\n";
/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    directory: TempDir,
}

impl Place {
    fn with_apiserver(apiserver: &str) -> Self {
        Self::with(&[("etcd", STAYS), ("kube-apiserver", apiserver), ("kube-controller-manager", STAYS)])
    }

    fn with(programs: &[(&str, &str)]) -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        for name in ["programs", "pids", "temporary"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        for (name, script) in programs {
            let program = place.path().join("programs").join(name);
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        }
        place
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn run(&self) -> Child {
        self.run_on("control-plane")
    }

    fn run_on(&self, stage: &str) -> Child {
        self.start(&["run", "--cluster", stage, "--jobs", "1", "--operator-command", "no-such-operator"])
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let programs = self.path().join("programs");
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new(env!("CARGO_BIN_EXE_stowage-e2e"))
            .args(arguments)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("KUBEBUILDER_ASSETS", programs)
            .env("PIDS", self.path().join("pids"))
            .env("TMPDIR", self.path().join("temporary"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits for a stub and returns its process id.
    fn pid(&self, name: &str) -> Pid {
        let file = self.path().join("pids").join(name);
        let start = Instant::now();
        loop {
            let told = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
            if let Some(pid) = told.and_then(Pid::from_raw) {
                return pid;
            }
            assert!(start.elapsed() < PATIENCE, "{name} was not started");
            std::thread::yield_now();
        }
    }

    fn assert_nothing_left(&self, pids: &[Pid]) {
        for pid in pids {
            assert!(test_kill_process(*pid).is_err(), "process {pid:?} is left");
        }
        let left = fs::read_dir(self.path().join("temporary")).unwrap().count();
        assert_eq!(left, 0, "{left} entries of the temporary directory are left");
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[rstest]
#[case(Signal::INT, "interrupted")]
#[case(Signal::TERM, "terminated")]
#[case(Signal::HUP, "the terminal is gone")]
fn a_signal_ends_all_that_was_started(#[case] signal: Signal, #[case] why: &str) {
    let place = Place::with_apiserver(STAYS);
    let run = place.run();
    let pids = [place.pid("etcd"), place.pid("kube-apiserver")];
    kill_process(Pid::from_child(&run), signal).unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!((output.status.code(), told(&output).trim_end()), (Some(1), &*format!("stowage-e2e: {why}")));
    place.assert_nothing_left(&pids);
}

#[test]
fn a_program_that_ends_too_early_is_told_with_its_last_words() {
    let place = Place::with_apiserver(ENDS);
    let output = place.run().wait_with_output().unwrap();
    let expected = "stowage-e2e: kube-apiserver ended (exit code 7): no luck";
    assert_eq!((output.status.code(), told(&output).trim_end()), (Some(1), expected));
    place.assert_nothing_left(&[place.pid("etcd")]);
}

/// Returns the name of the cluster that a stub was called to create or to delete.
fn cluster(asked: &str) -> &str {
    asked.split_once("--name ").map(|(_, rest)| rest.split_whitespace().next().unwrap_or_default()).unwrap_or_default()
}

#[rstest]
#[case(Signal::INT, "interrupted")]
#[case(Signal::TERM, "terminated")]
fn a_signal_deletes_a_cluster_that_is_being_made(#[case] signal: Signal, #[case] why: &str) {
    let place = Place::with(&[("kind", KIND)]);
    let run = place.run_on("kind");
    let kind = place.pid("kind");
    kill_process(Pid::from_child(&run), signal).unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!((output.status.code(), told(&output).trim_end()), (Some(1), &*format!("stowage-e2e: {why}")));
    let asked = fs::read_to_string(place.path().join("pids/asked")).unwrap();
    let [create, delete] = asked.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(create.starts_with("create cluster ") && delete.starts_with("delete cluster "), "{asked}");
    assert!(!cluster(create).is_empty() && cluster(create) == cluster(delete), "{asked}");
    place.assert_nothing_left(&[kind]);
}
