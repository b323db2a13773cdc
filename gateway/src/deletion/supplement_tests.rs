use http_body_util::{BodyExt, StreamBody};
use rstest::rstest;

use super::*;
use crate::head::Key;

fn object(key: &str) -> Doomed {
    let key = Key::parse(key.as_bytes()).expect("a key");
    Doomed { key, version: None, etag: None, modified: None, size: None }
}

async fn within(supplement: Supplement, document: &str, size: usize) -> String {
    let pieces: Vec<_> = document.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
    let frames = pieces.into_iter().map(|piece| Ok::<_, BoxError>(Frame::data(piece)));
    let body = StreamBody::new(futures::stream::iter(frames)).boxed_unsync();
    let whole = supplement.within(body).collect().await.expect("it is whole").to_bytes();
    String::from_utf8(whole.to_vec()).expect("text")
}

// covers: 6.deleteObjects.again
#[rstest]
#[tokio::test]
async fn a_result_has_an_entry_for_each_object_that_is_named(#[values(1, 7, 4096)] size: usize) {
    let mut supplement = Supplement::of(["a&b".to_owned(), "a&b".to_owned(), "c".to_owned(), "d".to_owned()]);
    supplement.add(&object("d"), Some("v7"), Answer::Full);
    let conditional = Doomed { etag: Some("\"7\"".into()), ..object("<e>") };
    supplement.add(&conditional, None, Answer::Errors);
    supplement.add(&object("f"), None, Answer::Errors);
    let first = "<Deleted><Key>a&amp;b</Key></Deleted>";
    let second = "<Error><Key>c</Key><Code>AccessDenied</Code></Error>";
    let store = format!("<DeleteResult xmlns=\"x\">\n{first}{second}<Deleted><Key>g</Key></Deleted></DeleteResult>");
    let own = "<Deleted><Key>d</Key><DeleteMarker>true</DeleteMarker>\
        <DeleteMarkerVersionId>v7</DeleteMarkerVersionId></Deleted>";
    let error = "<Error><Key>&lt;e&gt;</Key><Code>PreconditionFailed</Code>\
        <Message>The object was not deleted.</Message></Error>";
    let expected = format!(
        "<DeleteResult xmlns=\"x\">\n{first}{first}{first}{second}{second}<Deleted><Key>g</Key></Deleted>\
         {own}{own}{error}</DeleteResult>"
    );
    assert_eq!(within(supplement.clone(), &store, size).await, expected);
    let alone = supplement.alone();
    assert!(alone.ends_with(&format!("{own}{own}{error}</DeleteResult>")), "{alone}");
}

#[rstest]
#[case("<DeleteResult/>")]
#[case("<DeleteResult><Deleted>")]
#[case("")]
#[tokio::test]
async fn what_is_no_such_result_passes_as_it_is(#[case] document: &str) {
    assert_eq!(within(Supplement::of(["a".to_owned()]), document, 3).await, document);
}
