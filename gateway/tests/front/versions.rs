//! Deletions in buckets that keep versions: an object that is already deleted is not deleted again,
//! because some stores copy it each time.

use rstest::rstest;
use s3_sim::{Store, Versioning};

use crate::deletions::{BUCKET, delete, document, of_claim, store};
use crate::{Stage, answer, ask, code};

/// Starts a gateway with a bucket that keeps versions. Returns it with the id of a key to the
/// bucket.
async fn stage(store: &Store) -> (Stage, String) {
    assert!(store.set_versioning(BUCKET, Versioning::Enabled));
    of_claim(store).await
}

fn lines(stage: &Stage) -> Vec<String> {
    stage.asked().iter().map(|asked| asked.line()).collect()
}

fn versions(store: &Store, key: &str) -> usize {
    store.versions(BUCKET).get(key).map_or(0, Vec::len)
}

// covers: 6.delete.again
#[tokio::test]
async fn what_is_deleted_already_is_not_deleted_again() {
    let store = store();
    let (stage, id) = stage(&store).await;
    for _ in 0..3 {
        let (status, _, text) = stage.signed_as(&id, ask("DELETE", "/album/secret")).await;
        assert_eq!(status.as_u16(), 204, "{text}");
    }
    assert_eq!(versions(&store, "secret"), 2, "the object and one marker");
    assert_eq!(lines(&stage), ["DELETE /album/secret", "HEAD /album/secret", "HEAD /album/secret"]);
    let conditional = ask("DELETE", "/album/secret").with("if-match", "\"7\"");
    let (status, _, text) = stage.signed_as(&id, conditional).await;
    assert_eq!((status.as_u16(), code(&text)), (412, "PreconditionFailed"), "{text}");
    let past = store.versions(BUCKET)["secret"].iter().map(|version| version.id.clone()).collect::<Vec<_>>();
    for id_of_version in past {
        let target = format!("/album/secret?versionId={id_of_version}");
        let (status, _, text) = stage.signed_as(&id, ask("DELETE", &target)).await;
        assert_eq!(status.as_u16(), 204, "{text}");
    }
    assert_eq!(versions(&store, "secret"), 0, "a version is deleted for good");
}

// covers: 6.delete.again
#[tokio::test]
async fn a_bucket_without_versions_pays_nothing() {
    let store = store();
    let (stage, id) = of_claim(&store).await;
    for _ in 0..2 {
        let (status, _, _) = stage.signed_as(&id, ask("DELETE", "/album/secret")).await;
        assert_eq!(status.as_u16(), 204);
        let (status, _, _) = stage.signed_as(&id, delete(&document(&["shared/a"]))).await;
        assert_eq!(status.as_u16(), 200);
    }
    let (delete, many) = ("DELETE /album/secret", "POST /album?delete=");
    assert_eq!(lines(&stage), [delete, "GET /album?versioning=", many, delete, many]);
}

// covers: 6.delete.again, 6.deleteObjects.again
#[rstest]
#[case::quiet("<Quiet>true</Quiet>")]
#[case::full("")]
#[tokio::test]
async fn a_delete_objects_is_told_of_what_it_names_and_deletes_what_is_there(#[case] quiet: &str) {
    let store = store();
    let (stage, id) = stage(&store).await;
    let object = |key: &str| format!("<Object><Key>{key}</Key></Object>");
    let named = format!("<Delete>{}{}{}{quiet}</Delete>", object("secret"), object("shared/a"), object("secret"));
    for at in 0..3 {
        let (status, _, text) = stage.signed_as(&id, delete(&named)).await;
        assert_eq!(status.as_u16(), 200, "{text}");
        let told = |key: &str| text.matches(&format!("<Key>{key}</Key>")).count();
        let expected = if quiet.is_empty() { (2, 1) } else { (0, 0) };
        assert_eq!((told("secret"), told("shared/a")), expected, "{at}: {text}");
        assert!(text.contains("DeleteResult") && !text.contains("<Error>"), "{text}");
    }
    assert_eq!((versions(&store, "secret"), versions(&store, "shared/a")), (2, 2));
    let asked = lines(&stage);
    assert_eq!(asked.iter().filter(|line| line.starts_with("POST")).count(), 1, "{asked:?}");
    assert_eq!(asked.iter().filter(|line| line.contains("versioning")).count(), 1, "{asked:?}");
    // One of the objects exists again: only that one is left for the store.
    assert!(store.put_object(BUCKET, "secret", "new").is_some());
    let (_, _, text) = stage.signed_as(&id, delete(&named)).await;
    assert_eq!(text.matches("<Key>shared/a</Key>").count(), usize::from(quiet.is_empty()), "{text}");
    let last = stage.asked().pop().expect("it was asked").body.expect("it is whole");
    let last = String::from_utf8(last.to_vec()).expect("text");
    assert!(last.contains("<Key>secret</Key>") && !last.contains("shared/a"), "{last}");
    assert_eq!(versions(&store, "secret"), 4);
}

/// Makes the store answer with this `Server` header, and with or without versioning.
fn named(stage: &Stage, name: &'static str, keeps: bool) {
    let status = if keeps {
        "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    } else {
        "<VersioningConfiguration></VersioningConfiguration>"
    };
    stage.store_answers(move |asked| match (asked.method.as_str(), asked.uri.query()) {
        ("GET", Some("versioning=")) => answer(200, &[("server", name)], status),
        ("POST", Some("delete=")) => answer(200, &[("server", name)], "<DeleteResult></DeleteResult>"),
        _ => answer(200, &[("server", name)], ""),
    });
}

// covers: 6.segments.hidden
#[rstest]
#[case("VERSITYGW", true, 400)]
#[case("versitygw", true, 400)]
#[case("VERSITYGW", false, 200)]
#[case("MinIO", true, 200)]
#[tokio::test]
async fn an_empty_segment_is_refused_where_a_store_hides_its_versions(
    #[case] name: &'static str,
    #[case] keeps: bool,
    #[case] expected: u16,
) {
    let stage = Stage::new().await;
    stage.credential("WHOLE", BUCKET, serde_json::json!({}));
    stage.until(|stage| stage.knows("WHOLE")).await;
    named(&stage, name, keeps);
    let writes = [
        ask("PUT", "/album/a//b").sending("b"),
        ask("PUT", "/album//b").sending("b"),
        ask("PUT", "/album/a//c").with("x-amz-copy-source", "album/a").sending(""),
        ask("DELETE", "/album/a//b"),
        ask("POST", "/album/a//b?uploads").sending(""),
        delete(&document(&["a", "a//b"])),
    ];
    for write in writes {
        let line = format!("{} {}", write.method, write.target);
        let (status, _, text) = stage.signed_as("WHOLE", write).await;
        let found = if status.is_success() { 200 } else { status.as_u16() };
        assert_eq!(found, expected, "{line}: {text}");
        assert!(expected == 200 || code(&text) == "InvalidArgument", "{text}");
    }
    for other in ["/album/a/b", "/album/a/"] {
        let (status, _, text) = stage.signed_as("WHOLE", ask("PUT", other).sending("b")).await;
        assert_eq!(status.as_u16(), 200, "{other}: {text}");
    }
    for plain in [ask("GET", "/album/a//b"), ask("DELETE", "/album/a//b?versionId=7")] {
        let (status, _, text) = stage.signed_as("WHOLE", plain).await;
        assert!(status.is_success(), "{text}");
    }
    let asked = lines(&stage).iter().filter(|line| line.ends_with("?versioning=")).count();
    assert!(name != "MinIO" || asked <= 2, "one that hides nothing is known: {asked}");
}
