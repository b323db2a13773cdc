//! The example's claims: the copier keeps its promises under every fault, and its planted bug is
//! found.

#[path = "../examples/copier/controller.rs"]
mod controller;
#[path = "../examples/copier/simulation.rs"]
mod simulation;

use controller::Order;
use explore::ExplorationReport;
use faults::Plan;
use simulation::simulation;

fn explored(order: Order) -> ExplorationReport {
    simulation(order).random(50).explore()
}

#[test]
fn a_sound_controller_keeps_its_promises_at_every_crash_point_and_under_every_single_fault() {
    let report = explored(Order::FinalizerFirst);
    assert!(report.is_clean(), "{report}");
    assert!(report.effects > 5 && report.crash_points == 3 * report.effects as usize, "{report}");
    assert!(report.faults.len() > 20, "{report}");
}

#[test]
fn a_planted_bug_is_found_and_shown_with_one_fault() {
    let report = explored(Order::CopyFirst);
    let stray = |failure: &&explore::Failure| failure.broken.promise == "NoStrayCopy";
    assert!(report.failures.iter().any(|failure| stray(&failure)), "{report}");
    for failure in report.failures.iter().filter(stray) {
        assert_eq!(failure.smallest.entries.len(), 1, "{}", failure.plan);
    }
}

#[test]
fn what_breaks_a_promise_among_other_faults_is_shrunk_to_it() {
    let simulation = simulation(Order::CopyFirst);
    let report = simulation.clone().random(0).explore();
    let one = &report.failures.first().expect("the bug is found").smallest;
    let more: Plan = format!("s3:PutObject@2 slow(50); {one}; kube:list configmaps@9 hang").parse().expect("a plan");
    let broken = |plan: &Plan| simulation.run(plan).broken.iter().any(|broken| broken.promise == "NoStrayCopy");
    assert!(broken(&more));
    assert_eq!(explore::shrink(&more, broken), *one);
}

#[test]
fn the_same_plan_gives_the_same_run() {
    let simulation = simulation(Order::FinalizerFirst);
    let plan: Plan = "s3:PutObject@1 crash(after-effect)".parse().expect("a plan");
    let lines = || simulation.run(&plan).lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(lines(), lines());
}
