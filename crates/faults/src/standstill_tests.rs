//! Tests of suspension: a suspended process does and receives nothing, and continues where it was.

use std::future::poll_fn;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::tests::{BUCKET, Bench, SECRET};
use super::*;

const STILL: Duration = Duration::from_secs(90);

/// Suspends the process once, for the planned time.
async fn drive(instance: &Instance) -> Stop {
    let stop = instance.stops().await;
    sleep(STILL).await;
    instance.go_on();
    stop
}

#[tokio::test(start_paused = true)]
async fn the_request_is_sent_when_the_pause_is_over() {
    let bench = Bench::new("#1 pause(90)");
    let start = Instant::now();
    let before_end = async {
        sleep(STILL - Duration::from_secs(1)).await;
        bench.applied()
    };
    let (answer, stop, applied) = tokio::join!(bench.kube("PATCH", SECRET), drive(&bench.instance), before_end);
    assert_eq!((stop, applied), (Stop::For(STILL), 0));
    assert_eq!((answer.unwrap().status().as_u16(), bench.applied()), (200, 1));
    assert_eq!(start.elapsed(), STILL + Duration::from_millis(10));
    assert_eq!(bench.line(1), "#1 kube:patch secrets team-a/photos -> 200 [pause(90)] 0ms/1");
}

#[tokio::test(start_paused = true)]
async fn no_call_begins_and_no_answer_comes_while_a_life_stands_still() {
    let bench = Bench::new("#2 pause(90)");
    let later = async {
        sleep(Duration::from_secs(1)).await;
        bench.s3("PUT", BUCKET).await
    };
    // The first call has reached the server and is answered after 10 ms, when the process is
    // suspended.
    let first = async {
        let answer = bench.kube("GET", SECRET).await;
        (answer.is_ok(), Instant::now())
    };
    let end = Instant::now() + STILL;
    let (first, second, third, _) = tokio::join!(first, bench.s3("PUT", BUCKET), later, drive(&bench.instance));
    assert!(second.is_ok() && third.is_ok());
    assert_eq!(first, (true, end));
    assert_eq!(bench.line(3), "#3 s3:CreateBucket photos -> 200 90000ms/1");
}

#[tokio::test(start_paused = true)]
async fn a_life_that_stands_still_is_not_polled() {
    let bench = Bench::new("#1 pause(90)");
    let mut polls = Vec::new();
    let operator = async {
        let ticks = async {
            loop {
                sleep(Duration::from_secs(30)).await;
                polls.push(bench.effects.elapsed_ms());
            }
        };
        tokio::select! {
            () = ticks => {}
            _ = bench.kube("PATCH", SECRET) => {}
        }
        polls.push(bench.effects.elapsed_ms());
    };
    let (outcome, _) = tokio::join!(run_until_crash(&bench.instance, operator), drive(&bench.instance));
    assert_eq!(outcome, LifeEnd::Finished(()));
    // Three ticks were due in the meantime, and only one is received, late.
    assert_eq!(polls, [90_000, 90_010]);
}

#[tokio::test(start_paused = true)]
async fn a_life_can_be_killed_while_it_stands_still() {
    let bench = Bench::new("#1 pause(90)");
    let kill = async {
        sleep(Duration::from_secs(1)).await;
        bench.instance.kill();
    };
    let operator = async { bench.kube("PATCH", SECRET).await.is_ok() };
    let (outcome, ()) = tokio::join!(run_until_crash(&bench.instance, operator), kill);
    assert_eq!(outcome, LifeEnd::Crashed { effect: None });
    assert_eq!(bench.line(1), "#1 kube:patch secrets team-a/photos -> died [pause(90)] 0ms/1");
}

#[tokio::test(start_paused = true)]
async fn a_twin_does_not_stand_still_for_a_twin() {
    let mut bench = Bench::new("#1 twin");
    bench.instance = bench.effects.twin();
    assert!(bench.kube("PATCH", SECRET).await.is_ok());
    assert_eq!(bench.line(1), "#1 kube:patch secrets team-a/photos -> 200 [twin] 0ms/2");
}

#[tokio::test(start_paused = true)]
async fn who_is_held_goes_on_in_the_order_in_which_it_came() {
    let bench = Bench::new("#1 twin");
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    let names = ["first", "second", "third"];
    for name in names {
        let (gate, sender) = (Gate::before(&bench.instance), sender.clone());
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            poll_fn(|context| gate.poll_open(context)).await;
            sender.send((name, Instant::now())).expect("the test listens");
        });
    }
    let start = Instant::now();
    let call = async { bench.kube("PATCH", SECRET).await.is_ok() };
    let (_, stop) = tokio::join!(call, drive(&bench.instance));
    assert_eq!(stop, Stop::Twin);
    for name in names {
        assert_eq!(order.recv().await, Some((name, start + STILL)));
    }
}
