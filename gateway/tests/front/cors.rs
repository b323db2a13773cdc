//! CORS.

use http::HeaderMap;
use rstest::rstest;
use serde_json::json;

use crate::{Ask, KEY, Stage, answer, ask, code};

const APP: &str = "https://app.example";

/// Starts a gateway with one page allowed by the backend `main`, and another by `other`.
async fn stage() -> Stage {
    let stage = Stage::new().await;
    let cors = json!({"allowedOrigins": [APP], "allowedMethods": ["GET", "PUT"], "allowedHeaders": ["*"]});
    stage.backend("main", json!({"cors": cors}));
    let cors = json!({"allowedOrigins": ["https://other.example"], "allowedMethods": ["GET"]});
    stage.backend("other", json!({"cors": cors}));
    let knows = |stage: &Stage, name: &str| {
        stage.gateway.registry().backend(name).is_some_and(|backend| backend.cors.is_some())
    };
    stage.until(|stage| knows(stage, "main") && knows(stage, "other")).await;
    stage
}

fn preflight(target: &str, origin: &str, method: &str) -> Ask {
    ask("OPTIONS", target).with("origin", origin).with("access-control-request-method", method)
}

fn allowed(headers: &HeaderMap) -> Option<&str> {
    headers.get("access-control-allow-origin").map(|origin| origin.to_str().expect("text"))
}

// covers: 6.cors.preflight
#[rstest]
#[case("/photos/a", APP, "PUT", 200)]
#[case("/photos/a", APP, "DELETE", 403)]
#[case("/photos/a", "https://evil.example", "GET", 403)]
// It doesn't reveal which buckets exist, or at which store.
#[case("/nobodys/a", APP, "PUT", 200)]
#[case("/photos/a", "https://other.example", "GET", 200)]
#[tokio::test]
async fn a_preflight_is_answered_without_a_signature(
    #[case] target: &str,
    #[case] origin: &str,
    #[case] method: &str,
    #[case] expected: u16,
) {
    let stage = stage().await;
    let (status, headers, text) = stage.send(preflight(target, origin, method).plain()).await;
    assert_eq!(status.as_u16(), expected, "{text}");
    match expected {
        200 => assert_eq!((allowed(&headers), text.as_str()), (Some(origin), "")),
        _ => assert_eq!((allowed(&headers), code(&text)), (None, "AccessForbidden")),
    }
    assert!(stage.asked().is_empty());
}

// covers: 6.cors
#[tokio::test]
async fn an_answer_is_for_the_pages_of_its_backend() {
    let stage = stage().await;
    stage.store_answers(|_| answer(200, &[("access-control-allow-origin", "*"), ("vary", "accept-encoding")], "bytes"));
    for (origin, expected) in [(Some(APP), Some(APP)), (Some("https://other.example"), None), (None, None)] {
        let request = ask("GET", "/photos/a");
        let (_, headers, _) =
            stage.signed(origin.into_iter().fold(request, |it, origin| it.with("origin", origin))).await;
        assert_eq!(allowed(&headers), expected, "{origin:?}");
        let vary: Vec<_> = headers.get_all("vary").iter().collect();
        assert_eq!(vary, ["accept-encoding", "Origin"]);
    }
    assert!(stage.asked().iter().all(|asked| asked.header("origin").is_none()), "it is nothing to the store");
}

// covers: 6.cors
#[tokio::test]
async fn an_error_can_be_read_by_the_page() {
    let stage = stage().await;
    let refused = ask("GET", "/photos/a").with("origin", APP).signed("AKIAUNKNOWN", "secret");
    let (status, headers, text) = stage.send(refused).await;
    assert_eq!((status.as_u16(), code(&text), allowed(&headers)), (403, "InvalidAccessKeyId", Some(APP)));
    stage.store_answers(|_| answer(404, &[], "<Error><Code>NoSuchKey</Code></Error>"));
    let (status, headers, _) = stage.signed(ask("GET", "/photos/a").with("origin", APP)).await;
    assert_eq!((status.as_u16(), allowed(&headers)), (404, Some(APP)));
}

// covers: 6.cors
#[tokio::test]
async fn without_a_rule_no_page_is_told_anything() {
    let stage = Stage::new().await;
    let (status, _, text) = stage.send(preflight("/photos/a", APP, "GET").plain()).await;
    assert_eq!((status.as_u16(), code(&text)), (403, "AccessForbidden"));
    let (_, headers, _) = stage.send(ask("GET", "/photos/a").with("origin", APP).signed(KEY, crate::SECRET)).await;
    assert!(allowed(&headers).is_none() && !headers.contains_key("vary"), "{headers:?}");
}
