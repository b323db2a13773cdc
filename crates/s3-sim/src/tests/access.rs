//! Access control: keys, signatures, accounts, and the two interfaces.

use http::{Method, Request, StatusCode};
use s3s::dto::{HeadBucketInput, ListBucketsInput};
use s3s::{Body, S3, S3ErrorCode, S3Request};
use tower::ServiceExt as _;

use super::*;

#[tokio::test(start_paused = true)]
async fn keys_are_checked() {
    let store = store();
    let unknown = InProcess::new(store.http()).client("AKIANOBODY", "acme-secret", "us-east-1");
    let result = unknown.list_buckets().send().await;
    assert_eq!(
        result.as_ref().err().and_then(ProvideErrorMetadata::message),
        Some("The AWS Access Key Id you provided does not exist in our records.")
    );
    assert_eq!(refused(result), code("InvalidAccessKeyId", 403));
    let wrong = InProcess::new(store.http()).client("AKIAACME", "not-the-secret", "us-east-1");
    let result = wrong.list_buckets().send().await;
    let message = result.as_ref().err().and_then(ProvideErrorMetadata::message);
    assert!(message.is_some_and(|message| message.starts_with("The request signature we calculated")));
    assert_eq!(refused(result), code("SignatureDoesNotMatch", 403));
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_is_unknown() {
    let store = store();
    let client = client(&store, "acme");
    client.list_buckets().send().await.expect("a valid key");
    assert!(store.revoke_key("AKIAACME"));
    assert_eq!(refused(client.list_buckets().send().await), code("InvalidAccessKeyId", 403));
    assert!(!store.revoke_key("AKIAACME"));
}

#[tokio::test(start_paused = true)]
async fn a_signature_for_another_region_is_refused() {
    let dialect = Dialect { region: "eu-west-1".to_owned(), ..Dialect::default() };
    let store = store_with(dialect.clone());
    let elsewhere = InProcess::new(store.http()).client("AKIAACME", "acme-secret", "us-east-1");
    assert_eq!(refused(elsewhere.list_buckets().send().await), code("AuthorizationHeaderMalformed", 400));
    let tolerant = store_with(Dialect { checks_signing_region: false, ..dialect });
    let elsewhere = InProcess::new(tolerant.http()).client("AKIAACME", "acme-secret", "us-east-1");
    elsewhere.list_buckets().send().await.expect("any region will do");
}

#[tokio::test(start_paused = true)]
async fn accounts_do_not_reach_each_others_buckets() {
    let (store, _) = with_bucket();
    store.put_object("photos", "cat", "meow");
    let rival = client(&store, "rival");
    let denied = code("AccessDenied", 403);
    assert_eq!(refused(rival.get_object().bucket("photos").key("cat").send().await), denied);
    assert_eq!(refused(rival.put_object().bucket("photos").key("dog").send().await), denied);
    assert_eq!(refused(rival.delete_object().bucket("photos").key("cat").send().await), denied);
    assert_eq!(refused(rival.delete_bucket().bucket("photos").send().await), denied);
    assert_eq!(refused(rival.get_bucket_tagging().bucket("photos").send().await), denied);
    let copy = rival.copy_object().bucket("photos").key("x").copy_source("photos/cat").send().await;
    assert_eq!(refused(copy), denied);
    let listed = rival.list_buckets().send().await.expect("an answer");
    assert_eq!(listed.buckets(), []);
    assert_eq!(store.objects("photos").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_lets_another_account_in_says_whose_it_is() {
    let (store, _) = with_bucket();
    let guest = client(&store, "rival");
    assert_eq!(refused(guest.get_bucket_acl().bucket("photos").send().await), code("AccessDenied", 403));
    assert!(store.let_in("photos", "rival"));
    guest.put_object().bucket("photos").key("dog").send().await.expect("it is let in");
    let acl = guest.get_bucket_acl().bucket("photos").send().await.expect("it is let in");
    assert_eq!(acl.owner().and_then(|owner| owner.id()), Some("acme"));
    let own = guest.list_buckets().send().await.expect("an answer");
    assert_eq!((own.owner().and_then(|owner| owner.id()), own.buckets()), (Some("rival"), &[][..]));
    assert_eq!(refused(guest.create_bucket().bucket("photos").send().await), code("BucketAlreadyExists", 409));
}

#[tokio::test(start_paused = true)]
async fn unsigned_requests_are_denied() {
    let (store, _) = with_bucket();
    let request = Request::get("http://s3.simulation/photos").body(Body::empty()).expect("a request");
    let response = store.http().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let xml = response.into_body().bytes().expect("a body in memory");
    assert!(String::from_utf8_lossy(&xml).contains("<Code>AccessDenied</Code>"));
}

#[tokio::test(start_paused = true)]
async fn answers_to_head_have_no_body() {
    let store = store();
    let request = Request::builder().method(Method::HEAD).uri("http://s3.simulation/photos");
    let request = request.body(Body::empty()).expect("a request");
    let response = store.http().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(http_body::Body::size_hint(response.body()).exact(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn request_ids_are_counted() {
    let store = store();
    let client = client(&store, "acme");
    for id in ["0000000000000001", "0000000000000002"] {
        use aws_sdk_s3::operation::RequestId as _;
        let output = client.list_buckets().send().await.expect("an answer");
        assert_eq!(output.request_id(), Some(id));
    }
}

fn request<I>(input: I) -> S3Request<I> {
    S3Request {
        input,
        method: Method::GET,
        uri: http::Uri::default(),
        headers: http::HeaderMap::new(),
        extensions: http::Extensions::new(),
        credentials: None,
        region: None,
        service: None,
        trailing_headers: None,
    }
}

#[tokio::test(start_paused = true)]
async fn the_in_process_face_acts_as_its_account() {
    let (store, _) = with_bucket();
    let own = store.as_account("acme");
    let listed = own.list_buckets(request(ListBucketsInput::default())).await.expect("an answer");
    assert_eq!(listed.output.buckets.map(|buckets| buckets.len()), Some(1));
    let head = HeadBucketInput { bucket: "photos".to_owned(), ..HeadBucketInput::default() };
    let error = store.as_account("rival").head_bucket(request(head)).await.expect_err("a refusal");
    assert_eq!(*error.code(), S3ErrorCode::AccessDenied);
}

#[tokio::test(start_paused = true)]
async fn the_read_timeout_of_the_sdk_counts() {
    #[derive(Clone)]
    struct Hangs;
    impl tower::Service<Request<Body>> for Hangs {
        type Response = http::Response<Body>;
        type Error = tower::BoxError;
        type Future = futures::future::BoxFuture<'static, Result<Self::Response, Self::Error>>;
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
            std::task::Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: Request<Body>) -> Self::Future {
            Box::pin(futures::future::pending())
        }
    }
    let client = InProcess::new(Hangs).client("AKIAACME", "acme-secret", "us-east-1");
    let timeout =
        aws_sdk_s3::config::timeout::TimeoutConfig::builder().read_timeout(std::time::Duration::from_secs(30)).build();
    let overridden = aws_sdk_s3::config::Config::builder().timeout_config(timeout);
    let started = tokio::time::Instant::now();
    let call = client.list_buckets().customize().config_override(overridden);
    let error = call.send().await.expect_err("a timeout");
    assert!(matches!(&error, SdkError::DispatchFailure(failure) if failure.is_timeout()));
    assert_eq!(started.elapsed().as_secs(), 30);
}
