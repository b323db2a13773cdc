use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, Response};
use kube::client::Body;
use rstest::rstest;
use serde_json::json;
use tower::service_fn;

use super::*;

fn lease(name: &str, number: &str) -> Lease {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        annotations: Some([(RENEWALS.to_owned(), number.to_owned())].into()),
        ..ObjectMeta::default()
    };
    Lease { metadata, spec: None }
}

// covers: 6.quota.exchange.bounds
#[test]
fn names_and_numbers_of_any_length_are_no_sign_of_life() {
    let of = |name: &str, number: &str| {
        let lease = lease(name, number);
        sign(&lease).map(|(replica, number)| (replica.len(), number))
    };
    let longest = format!("{LEASE_PREFIX}{}", "a".repeat(LONGEST_REPLICA));
    assert_eq!(of(&longest, "7"), Some((LONGEST_REPLICA, 7)));
    assert_eq!(of(&longest, &format!("{}7", "0".repeat(250_000))), Some((LONGEST_REPLICA, 7)));
    for (name, number) in [
        (format!("{longest}a"), "7".to_owned()),
        (LEASE_PREFIX.to_owned(), "7".to_owned()),
        ("of-another-kind".to_owned(), "7".to_owned()),
        (longest.clone(), "9".repeat(250_000)),
        (longest.clone(), "x".repeat(250_000)),
        (longest, "-1".to_owned()),
    ] {
        assert_eq!(of(&name, &number), None);
    }
}

/// Returns an API server that counts its requests, and has one response per method.
fn client(asked: &Arc<AtomicUsize>, patch: u16, post: u16) -> Client {
    let asked = asked.clone();
    let service = service_fn(move |request: Request<Body>| {
        asked.fetch_add(1, Ordering::Relaxed);
        let status = if request.method() == Method::PATCH { patch } else { post };
        let body = match status {
            200 => json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}}),
            _ => json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
                "reason": "Any", "message": "no", "metadata": {}}),
        };
        let answer = Response::builder().status(status).body(Body::from(body.to_string().into_bytes()));
        async move { answer }
    });
    Client::new(service, "system")
}

#[rstest]
#[case::renewed_every_ten_seconds(200, 200, 31)]
#[case::refused_every_two_seconds(403, 200, 151)]
#[case::missing_and_not_to_be_made(404, 403, 302)]
#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_at_a_pace_whatever_the_api_server_answers(
    #[case] patch: u16,
    #[case] post: u16,
    #[case] expected: usize,
) {
    let asked = Arc::default();
    let client = client(&asked, patch, post);
    let board = Board::new(&client, "system", watcher::Config::default(), Arc::new(Timestamp::now));
    let quotas = Quotas::new("me".to_owned());
    let five_minutes = Duration::from_millis(300_500);
    assert!(timeout(five_minutes, quotas.live(&board)).await.is_err(), "it goes on for ever");
    assert_eq!(asked.load(Ordering::Relaxed), expected);
}
