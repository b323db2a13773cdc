//! A measurement leaves no process and no file behind, however it ends. The programs that it starts
//! are stubs here, and none of them becomes ready.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// A stub that writes its process id and keeps running.
const STAYS: &str = "#!/bin/sh\necho $$ > \"$PIDS/$(basename \"$0\")\"\nexec sleep 600\n";
/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a stub and returns its process id.
fn pid(file: &Path) -> Pid {
    let start = Instant::now();
    loop {
        let told = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = told.and_then(Pid::from_raw) {
            return pid;
        }
        assert!(start.elapsed() < PATIENCE, "{} was not started", file.display());
        std::thread::yield_now();
    }
}

#[test]
fn a_signal_ends_the_store_of_a_measurement() {
    let directory = tempfile::tempdir().unwrap();
    let [programs, pids, temporary] = ["programs", "pids", "temporary"].map(|name| directory.path().join(name));
    for folder in [&programs, &pids, &temporary] {
        fs::create_dir(folder).unwrap();
    }
    for name in ["etcd", "kube-apiserver", "kube-controller-manager", "versitygw"] {
        fs::write(programs.join(name), STAYS).unwrap();
        fs::set_permissions(programs.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let run = Command::new(env!("CARGO_BIN_EXE_stowage-bench"))
        .args(["bench", "--operator-command", "no-such-operator", "--store"])
        .arg(programs.join("versitygw"))
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("KUBEBUILDER_ASSETS", &programs)
        .env("PIDS", &pids)
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let store = pid(&pids.join("versitygw"));
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let output = run.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(told.ends_with("stowage-bench: terminated\n"), "{told}");
    assert!(test_kill_process(store).is_err(), "process {store:?} is left");
    let left = fs::read_dir(temporary).unwrap().count();
    assert_eq!(left, 0, "{left} entries of the temporary directory are left");
}
