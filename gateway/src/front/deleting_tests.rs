use http::HeaderValue;

use super::*;

fn place(bucket: &str) -> Place {
    Place { endpoint: "http://s3.example".to_owned(), bucket: BucketName::parse(bucket).expect("a name") }
}

async fn turn(deletions: &Arc<Deletions>, key: &str) -> Result<Turn, Code> {
    deletions.turn(&place("photos"), &[key]).await.map_err(|refusal| refusal.code)
}

// covers: 6.delete.again
#[tokio::test(start_paused = true)]
async fn two_deletions_of_an_object_come_one_after_the_other() {
    let deletions = Arc::new(Deletions::default());
    let first = turn(&deletions, "a").await.expect("nobody else deletes it");
    assert!(turn(&deletions, "b").await.is_ok(), "another is not waited for");
    let waits = tokio::spawn({
        let deletions = deletions.clone();
        async move { turn(&deletions, "a").await.map(drop) }
    });
    sleep(PATIENCE / 2).await;
    assert!(!waits.is_finished());
    drop(first);
    assert_eq!(waits.await.expect("no panic"), Ok(()));
    let _held = turn(&deletions, "a").await.expect("it is free");
    assert_eq!(turn(&deletions, "a").await.map(drop), Err(Code::SlowDown));
}

// covers: 6.delete.again
#[tokio::test(start_paused = true)]
async fn a_deletion_that_nobody_waits_for_may_still_be_carried_out() {
    let deletions = Arc::new(Deletions::default());
    let mut given_up = turn(&deletions, "a").await.expect("it is free");
    given_up.is_open = true;
    drop(given_up);
    assert_eq!(turn(&deletions, "a").await.map(drop), Err(Code::SlowDown));
    sleep(IN_DOUBT).await;
    assert!(turn(&deletions, "a").await.is_ok());
    assert!(deletions.busy.lock().is_empty());
}

// covers: 6.delete.again
#[tokio::test(start_paused = true)]
async fn what_an_answer_teaches_outlasts_what_a_store_says() {
    let deletions = Deletions::default();
    let (one, other) = (place("photos"), place("films"));
    deletions.note(one.clone(), Versions::None(Instant::now()));
    assert_eq!((deletions.keeps(&one), deletions.known(&one, Instant::now())), (false, Some(false)));
    sleep(SAID).await;
    assert_eq!(deletions.known(&one, Instant::now()), None, "it is asked for again");
    for (id, keeps) in [("null", false), ("", false), ("7", true)] {
        let headers = HeaderMap::from_iter([(VERSION, HeaderValue::from_static(id))]);
        deletions.learn(one.clone(), &headers);
        assert_eq!(deletions.keeps(&one), keeps, "{id}");
    }
    deletions.note(one.clone(), Versions::None(Instant::now()));
    assert!(deletions.keeps(&one), "what it kept is there");
    assert!(!deletions.keeps(&other));
    deletions.learn(other.clone(), &HeaderMap::from_iter([(MARKER, HeaderValue::from_static("true"))]));
    assert!(deletions.keeps(&other));
}

// covers: 6.delete.again
#[test]
fn where_there_is_no_room_buckets_keep_versions() {
    let deletions = Deletions::default();
    for at in 0..MOST_BUCKETS {
        deletions.note(place(&format!("bucket-{at}")), Versions::Kept);
    }
    deletions.note(place("photos"), Versions::Kept);
    assert_eq!(deletions.buckets.lock().len(), MOST_BUCKETS);
    assert!(deletions.keeps(&place("photos")));
}
