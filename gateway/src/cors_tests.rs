use rstest::rstest;
use serde_json::{Value, json};

use super::*;

const APP: &str = "https://app.example";

/// The headers that it adds to a response.
const OF_APP: [(&str, &str); 3] = [
    ("access-control-allow-origin", APP),
    ("access-control-expose-headers", "ETag, x-amz-version-id"),
    ("vary", "Origin"),
];

fn rule(spec: Value) -> Rule {
    Rule::read(&serde_json::from_value(spec).expect("a rule"))
}

fn of_app() -> Rule {
    rule(json!({
        "allowedOrigins": [APP, "https://*.pages.example"], "allowedMethods": ["GET", "PUT"],
        "allowedHeaders": ["X-Amz-*", "content-type"], "exposeHeaders": ["ETag", "x-amz-version-id"],
        "maxAgeSeconds": 600,
    }))
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in pairs.iter().map(pair) {
        headers.append(name, value);
    }
    headers
}

fn of_preflight(origin: &str, method: &str, names: &str) -> HeaderMap {
    headers(&[("origin", origin), ("access-control-request-method", method), ("access-control-request-headers", names)])
}

fn told(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let mut told: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().expect("text"))).collect();
    told.sort_unstable();
    told
}

#[test]
fn a_preflight_is_told_what_it_may() {
    let asked = of_preflight(APP, "PUT", "Content-Type,x-amz-date , ,X-AMZ-META-A");
    let answer = preflight([&of_app()], &asked).expect("it is allowed");
    let expected = [
        ("access-control-allow-headers", "content-type, x-amz-date, x-amz-meta-a"),
        ("access-control-allow-methods", "GET, PUT"),
        ("access-control-allow-origin", APP),
        ("access-control-expose-headers", "ETag, x-amz-version-id"),
        ("access-control-max-age", "600"),
        ("vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"),
    ];
    assert_eq!(told(&answer), expected);
}

#[rstest]
#[case(of_preflight(APP, "GET", ""), None)]
#[case(of_preflight("https://a.b.pages.example", "GET", ""), None)]
#[case(of_preflight("https://pages.example", "GET", ""), Some(Code::AccessForbidden))]
#[case(of_preflight("https://app.example.org", "GET", ""), Some(Code::AccessForbidden))]
#[case(of_preflight("http://app.example", "GET", ""), Some(Code::AccessForbidden))]
#[case(of_preflight(APP, "DELETE", ""), Some(Code::AccessForbidden))]
#[case(of_preflight(APP, "put", ""), Some(Code::AccessForbidden))]
#[case(of_preflight(APP, "PUT", "x-amz-date,x-other"), Some(Code::AccessForbidden))]
#[case(of_preflight(APP, "PUT", "no token"), Some(Code::BadRequest))]
#[case(of_preflight(APP, "PUT", &vec!["x-amz-a"; MOST_HEADERS].join(",")), None)]
#[case(of_preflight(APP, "PUT", &vec!["x-amz-a"; MOST_HEADERS + 1].join(",")), Some(Code::BadRequest))]
#[case(headers(&[("origin", APP)]), Some(Code::BadRequest))]
#[case(headers(&[("access-control-request-method", "GET")]), Some(Code::BadRequest))]
fn a_preflight_is_allowed_by_a_rule_as_a_whole(#[case] asked: HeaderMap, #[case] refused: Option<Code>) {
    let of_another = rule(json!({"allowedOrigins": ["https://other.example"], "allowedMethods": ["DELETE"]}));
    let answer = preflight([&of_another, &of_app()], &asked);
    assert_eq!(answer.err().map(|refusal| refusal.code), refused);
    assert!(preflight([], &asked).is_err(), "without a rule there is nothing that allows it");
}

#[rstest]
#[case("GET", Some(APP), &OF_APP)]
#[case("DELETE", Some(APP), &[("vary", "Origin")])]
#[case("GET", Some("https://other.example"), &[("vary", "Origin")])]
#[case("GET", None, &[("vary", "Origin")])]
#[case("OPTIONS", Some(APP), &[])]
fn an_answer_is_marked_for_its_origin(
    #[case] method: Method,
    #[case] origin: Option<&'static str>,
    #[case] expected: &[(&str, &str)],
) {
    let asked = Asked { method, origin: origin.map(HeaderValue::from_static) };
    let mut answer = HeaderMap::new();
    mark([&of_app()], &asked, &mut answer);
    assert_eq!(told(&answer), expected);
    let mut answer = HeaderMap::new();
    mark([], &asked, &mut answer);
    assert!(answer.is_empty(), "nothing is said where there is no rule");
}

#[test]
fn what_is_for_everybody_is_told_so() {
    let open = rule(json!({"allowedOrigins": ["*"], "allowedMethods": ["GET"]}));
    let mut answer = headers(&[("vary", "Accept-Encoding")]);
    let asked = Asked { method: Method::GET, origin: Some(HeaderValue::from_static(APP)) };
    mark([&open], &asked, &mut answer);
    let expected = [("access-control-allow-origin", "*"), ("vary", "Accept-Encoding"), ("vary", "Origin")];
    assert_eq!(told(&answer), expected);
}

#[test]
fn a_pattern_is_no_shorter_than_what_stands_in_it() {
    let pattern = Pattern::read("https://a*a.example");
    assert!(pattern.fits("https://aa.example") && pattern.fits("https://abca.example"));
    assert!(!pattern.fits("https://a.example"));
}
