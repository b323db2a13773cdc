//! Tests of tenants' requests to gateways: each of G1 to G7 is broken once.

use std::collections::BTreeMap;

use bytes::Bytes;
use rstest::rstest;
use stowage_world::history::{Act, Answer, Contents, Exchange, Meant, Received, Right, What};

use super::super::Promise;
use super::story::{BUCKET, By, HOST, Story, key_id};

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Returns the bucket with these objects.
fn holding(objects: &[(&str, &str)]) -> Contents {
    let objects = objects.iter().map(|(key, bytes)| ((*key).to_owned(), text(bytes))).collect();
    BTreeMap::from([((HOST.to_owned(), BUCKET.to_owned()), objects)])
}

fn received(method: &str, target: &str, body: &str) -> Received {
    let authorization = "AWS4-HMAC-SHA256 Credential=ADMIN/20300101/us-east-1/s3/aws4_request, Signature=0";
    Received {
        host: HOST.to_owned(),
        method: method.to_owned(),
        target: target.to_owned(),
        headers: vec![("authorization".to_owned(), authorization.to_owned())],
        body: Some(text(body)),
    }
}

fn exchange(act: Act, method: &'static str, body: &str) -> Exchange {
    Exchange {
        gateway: 0,
        tenant: "team-a/photos".to_owned(),
        access_key_id: Some(key_id(1)),
        meant: Meant {
            act,
            method,
            bucket: BUCKET.to_owned(),
            key: "a b".to_owned(),
            body: text(body),
            ..Meant::default()
        },
        right: Right::Good,
        answer: Answer { status: 200, headers: Vec::new(), body: Ok(Bytes::new()) },
        received: vec![received(method, "/team-a-photos/a%20b", body)],
        before: holding(&[("a b", "old")]),
        after: holding(&[("a b", "old")]),
    }
}

/// Returns a correct write of an object.
fn written() -> Exchange {
    Exchange { after: holding(&[("a b", "new")]), ..exchange(Act::Write, "PUT", "new") }
}

/// Returns a correct read of that object.
fn read() -> Exchange {
    let answer = Answer { status: 200, headers: Vec::new(), body: Ok(text("old")) };
    Exchange { answer, ..exchange(Act::Read(None), "GET", "") }
}

/// Returns an invalid request that is refused without a request to a store.
fn refused(right: Right) -> Exchange {
    let answer = Answer { status: 403, headers: Vec::new(), body: Ok(text("<Error/>")) };
    let exchange = exchange(Act::Write, "PUT", "new");
    Exchange { right, answer, received: Vec::new(), ..exchange }
}

fn told(exchange: Exchange) -> Story {
    let mut story = Story::bound("Retain");
    story.setting.hidden = vec!["ADMIN".to_owned(), HOST.to_owned()];
    story.setting.is_undisturbed = true;
    story.note(What::Exchanged(Box::new(exchange)));
    story
}

#[rstest]
#[case::written(written())]
#[case::read(read())]
#[case::refused(refused(Right::Unsigned))]
#[case::over(refused(Right::Over))]
fn what_is_right_is_kept(#[case] exchange: Exchange) {
    told(exchange).assert_kept();
}

#[rstest]
#[case::not_stored(Promise::G1, |it: &mut Exchange| it.after = it.before.clone())]
#[case::half_of_it(Promise::G1, |it: &mut Exchange| it.after = holding(&[("a b", "ne")]))]
#[case::refused_and_stored(Promise::G1, |it: &mut Exchange| it.answer.status = 403)]
#[case::another_object(Promise::G2, |it: &mut Exchange| {
    it.answer.status = 503;
    it.after = holding(&[("a b", "old"), ("c", "new")]);
})]
#[case::unsigned(Promise::G2, |it: &mut Exchange| it.right = Right::Unsigned)]
#[case::other_body(Promise::G2, |it: &mut Exchange| it.right = Right::OtherBody)]
#[case::not_its_own(Promise::I15, |it: &mut Exchange| it.right = Right::Beyond)]
#[case::over(Promise::I7, |it: &mut Exchange| it.right = Right::Over)]
#[case::twice(Promise::G3, |it: &mut Exchange| it.received.push(it.received[0].clone()))]
#[case::another_key(Promise::G3, |it: &mut Exchange| it.received[0].target = "/team-a-photos/a+b".to_owned())]
#[case::another_bucket(Promise::G3, |it: &mut Exchange| it.received[0].target = "/films/a%20b".to_owned())]
#[case::another_query(Promise::G3, |it: &mut Exchange| it.received[0].target.push_str("?acl"))]
#[case::another_method(Promise::G3, |it: &mut Exchange| it.received[0].method = "POST".to_owned())]
#[case::another_body(Promise::G3, |it: &mut Exchange| it.received[0].body = Some(text("n")))]
#[case::another_header(Promise::G3, |it: &mut Exchange| {
    it.received[0].headers.push(("x-amz-acl".to_owned(), "public-read".to_owned()));
})]
#[case::the_clients_signature(Promise::G3, |it: &mut Exchange| it.access_key_id = Some("ADMIN".to_owned()))]
#[case::our_key(Promise::G4, |it: &mut Exchange| it.answer.body = Ok(text("by ADMIN")))]
#[case::our_address(Promise::G4, |it: &mut Exchange| {
    it.answer.headers.push(("location".to_owned(), format!("http://{HOST}/")));
})]
#[case::refused_for_nothing(Promise::G6, |it: &mut Exchange| {
    it.answer.status = 503;
    it.after = it.before.clone();
})]
fn a_write_is_held_against_what_was_signed(#[case] promise: Promise, #[case] spoil: fn(&mut Exchange)) {
    let mut exchange = written();
    spoil(&mut exchange);
    told(exchange).assert_broken(promise, "team-a/photos asks gateway 0 for PUT team-a-photos/a b: ");
}

#[rstest]
#[case::half("ol")]
#[case::other("new")]
fn what_is_told_to_be_all_is_all(#[case] body: &str) {
    let mut exchange = read();
    exchange.answer.body = Ok(text(body));
    told(exchange).assert_broken(Promise::G5, "bytes are told to be all");
}

#[test]
fn what_breaks_off_is_told_to_be_nothing() {
    let mut exchange = read();
    exchange.answer.body = Err(text("ol"));
    let mut story = told(exchange);
    story.setting.is_undisturbed = false;
    story.assert_kept();
}

#[test]
fn who_is_wrong_costs_the_store_nothing() {
    let mut exchange = refused(Right::Unsigned);
    exchange.received = vec![received("PUT", "/team-a-photos/a%20b", "new")];
    told(exchange).assert_broken(Promise::G2, "a store is asked for it");
}

/// The gateway sends a HEAD of each object before it deletes any, and nothing else.
#[rstest]
#[case::of_the_object(&["/team-a-photos/a%20b"], true)]
#[case::twice(&["/team-a-photos/a%20b", "/team-a-photos/a%20b"], false)]
#[case::of_another(&["/team-a-photos/c"], false)]
#[case::of_a_version(&["/team-a-photos/a%20b?versionId=1"], false)]
fn an_object_is_looked_at_before_it_is_deleted(#[case] looked_at: &[&str], #[case] is_kept: bool) {
    let removed = exchange(Act::Remove(vec!["a b".to_owned()]), "DELETE", "");
    let looks = looked_at.iter().map(|target| received("HEAD", target, ""));
    let received = looks.chain(removed.received.clone()).collect();
    let answer = Answer { status: 204, ..removed.answer.clone() };
    let removed = Exchange { received, answer, after: holding(&[]), ..removed };
    if is_kept {
        told(removed).assert_kept();
    } else {
        told(removed).assert_broken(Promise::G3, "team-a/photos asks gateway 0 for DELETE team-a-photos/a b: ");
    }
}

/// Some objects of a DeleteObjects may stay, if the answer lists them.
#[rstest]
#[case::told("<DeleteResult><Error><Key>b</Key></Error></DeleteResult>", None)]
#[case::not_told("<DeleteResult></DeleteResult>", Some(Promise::G1))]
fn what_stays_is_told(#[case] answer: &str, #[case] broken: Option<Promise>) {
    let act = Act::Remove(vec!["a".to_owned(), "b".to_owned()]);
    let removed = exchange(act, "POST", "");
    let mut exchange = Exchange {
        before: holding(&[("a", "1"), ("b", "2"), ("c", "3")]),
        after: holding(&[("b", "2"), ("c", "3")]),
        answer: Answer { status: 200, headers: Vec::new(), body: Ok(text(answer)) },
        ..removed
    };
    exchange.right = Right::Either;
    match broken {
        Some(promise) => told(exchange).assert_broken(promise, "it is told to be stored"),
        None => told(exchange).assert_kept(),
    }
}

/// Three bytes are written to a bucket with this content.
#[rstest]
#[case::room("123", 6, true, None)]
#[case::no_room("123", 5, true, Some("it is answered as if that was right"))]
#[case::a_share_of_one_that_has_not_heard("1234567890", 12, false, None)]
#[case::no_share_in_calm("1234567890", 12, true, Some("it is answered as if that was right"))]
#[case::more_than_a_share("123456789", 11, false, Some("it is answered as if that was right"))]
fn a_bucket_holds_its_quota(
    #[case] held: &str,
    #[case] hard: u64,
    #[case] is_calm: bool,
    #[case] broken: Option<&str>,
) {
    let mut exchange = written();
    exchange.right = Right::TooMuch;
    exchange.before = holding(&[("c", held)]);
    exchange.after = holding(&[("a b", "new"), ("c", held)]);
    assert_quota(exchange, hard, is_calm, broken);
}

#[test]
fn shares_have_an_end() {
    let mut exchange = written();
    exchange.right = Right::Either;
    exchange.before = holding(&[("c", "1234567")]);
    exchange.after = holding(&[("a b", "new"), ("c", "1234567")]);
    assert_quota(exchange.clone(), 7, false, None);
    assert_quota(exchange, 6, false, Some("the bucket holds 10 bytes then, its hard quota is 6"));
}

#[track_caller]
fn assert_quota(exchange: Exchange, hard: u64, is_calm: bool, broken: Option<&str>) {
    let mut story = Story::bound("Retain");
    story.change_claim(By::Other, |claim| claim["spec"]["quota"] = serde_json::json!({"hard": hard}));
    story.setting.is_undisturbed = is_calm;
    story.note(What::Exchanged(Box::new(exchange)));
    match broken {
        Some(what) => story.assert_broken(Promise::G7, what),
        None => story.assert_kept(),
    }
}
