use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn go_on(at: usize) -> Option<Vec<Pair>> {
    Some(vec![pair("key-marker", at.to_string().as_bytes())])
}

fn position(query: &[Pair]) -> usize {
    let marker = query.iter().find(|pair| pair.name == b"key-marker" || pair.name == b"continuation-token");
    marker.map_or(0, |pair| std::str::from_utf8(&pair.value).expect("ours").parse().expect("a number"))
}

/// Answers like a store with numbered keys and uploads and their sizes, two of them per page.
fn answer(question: &Question, objects: &BTreeMap<usize, u64>, uploads: &BTreeMap<usize, u64>) -> Page {
    if let Some(key) = &question.key {
        let at: usize = std::str::from_utf8(key).expect("ours").parse().expect("a number");
        return Page { bytes: uploads.get(&at).copied().unwrap_or(0), objects: 1, ..Page::default() };
    }
    let from = position(&question.query);
    let all = if question.root == "ListMultipartUploadsResult" { uploads } else { objects };
    let page: Vec<(usize, u64)> = all.range(from..).take(2).map(|(key, size)| (*key, *size)).collect();
    let last = page.last().map_or(0, |(key, _)| *key);
    let next = if all.range(last + 1..).next().is_some() && !page.is_empty() { go_on(last + 1) } else { None };
    if question.root == "ListMultipartUploadsResult" {
        let uploads = page.iter().map(|(key, _)| (key.to_string().into_bytes(), b"id".to_vec())).collect();
        return Page { uploads, next, ..Page::default() };
    }
    let objects = page.len() as u64;
    Page { bytes: page.iter().map(|(_, size)| size).sum(), objects, entries: objects, next, uploads: Vec::new() }
}

proptest! {
    // covers: 6.quota.scan
    /// An upload that is completed during a scan is seen, and anything that stays is never missed.
    #[test]
    fn what_was_there_from_the_beginning_is_seen(
        sizes in prop::collection::vec(1_u64..100, 0..12),
        parts in prop::collection::vec(1_u64..100, 0..6),
        completed_at in prop::collection::vec(0_usize..30, 6),
        resumed_at in prop::option::of(0_usize..30),
    ) {
        let mut objects: BTreeMap<usize, u64> = sizes.iter().copied().enumerate().map(|(at, size)| (at * 3 + 1, size)).collect();
        let mut uploads: BTreeMap<usize, u64> = parts.iter().copied().enumerate().map(|(at, size)| (at * 3 + 2, size)).collect();
        let begun: u64 = objects.values().chain(uploads.values()).sum();
        let mut scan = Scan::begin();
        let mut marker = (scan.marker().expect("at a page"), 0, 0);
        for page in 0.. {
            prop_assert!(page < 200, "it ends");
            for (at, when) in completed_at.iter().enumerate() {
                if *when == page && let Some(size) = uploads.remove(&(at * 3 + 2)) {
                    objects.insert(at * 3 + 2, size);
                }
            }
            if let Some(reached) = scan.marker() {
                marker = (reached, scan.bytes, scan.objects);
            }
            if resumed_at == Some(page) {
                scan = Scan::resume(&marker.0, marker.1, marker.2).expect("it is ours");
            }
            let Some(question) = scan.question() else { break };
            scan.take(answer(&question, &objects, &uploads)).expect("it leads on");
        }
        prop_assert!(scan.bytes >= begun, "{} of {begun}", scan.bytes);
        prop_assert!(scan.bytes <= begun + parts.iter().sum::<u64>());
    }
}

#[test]
fn a_store_without_versions_or_uploads_has_objects() {
    let mut scan = Scan::begin();
    for status in [501, 405] {
        scan.refused(status).expect("it can do without");
    }
    assert_eq!(scan.question().map(|question| question.root), Some("ListBucketResult"));
    assert!(scan.refused(501).is_err() && Scan::begin().refused(403).is_err() && Scan::begin().refused(503).is_err());
}

// covers: 6.quota.scan.whole
/// versitygw 1.8.0 refuses the second page of uploads.
#[test]
fn a_later_page_that_is_refused_is_no_end_of_a_list() {
    let mut scan = Scan::begin();
    scan.take(Page { next: go_on(1), ..Page::default() }).expect("it leads on");
    for status in [400, 404, 405, 501] {
        assert_eq!(scan.refused(status), Err(Refused), "{status}");
    }
}

// covers: 6.quota.scan.whole
#[test]
fn an_upload_that_stays_without_parts_is_no_completed_one() {
    let upload = |key: &str| (key.as_bytes().to_vec(), b"id".to_vec());
    let page = |uploads| Page { uploads, ..Page::default() };
    let key = |scan: &Scan| scan.question().and_then(|question| question.key);
    let mut begun = Scan::begin();
    begun.take(page(vec![upload("\u{fffd}z"), upload("z")])).expect("it leads on");
    assert_eq!(key(&begun).as_deref(), Some("\u{fffd}z".as_bytes()));
    begun.refused(404).expect("it may be completed");
    begun.take(Page { bytes: 7, ..Page::default() }).expect("the parts of the other");
    assert_eq!(begun.question(), Scan::begin().question(), "the page is asked for again");
    assert_eq!(begun.marker(), None);
    let mut completed = begun.clone();
    completed.take(page(vec![upload("z")])).expect("it is gone");
    assert_eq!(completed.question().map(|question| question.root), Some("ListVersionsResult"));
    assert_eq!(completed.bytes, 7);
    assert_eq!(begun.take(page(vec![upload("z"), upload("\u{fffd}z")])), Err(Refused));
}

// covers: 6.quota.scan.whole
/// versitygw 1.8.0 lists nothing after a version that was deleted.
#[test]
fn nothing_behind_a_version_is_no_end_of_a_list() {
    let next = || Some(vec![pair("key-marker", b"a"), pair("version-id-marker", b"7")]);
    let mut scan = Scan::begin();
    scan.take(Page::default()).expect("no uploads");
    scan.take(Page { next: next(), entries: 1000, ..Page::default() }).expect("it leads on");
    assert_eq!(scan.clone().take(Page::default()), Err(Refused));
    scan.take(Page { entries: 1, ..Page::default() }).expect("the end");
    assert_eq!(scan.question(), None);
}

#[test]
fn a_list_that_leads_back_to_itself_is_none() {
    let mut scan = Scan::begin();
    let page = || Page { next: go_on(1), ..Page::default() };
    assert_eq!(scan.take(page()), Ok(()));
    assert_eq!(scan.take(page()), Err(Refused));
}
