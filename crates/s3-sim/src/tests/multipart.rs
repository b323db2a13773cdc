//! Multipart uploads.

use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};

use super::*;

fn small_parts() -> (Store, Client) {
    let store = store_with(Dialect { minimum_part_size: 3, page_size: 2, ..Dialect::default() });
    store.put_bucket("acme", "photos");
    let client = client(&store, "acme");
    (store, client)
}

async fn start(client: &Client) -> String {
    let created = client.create_multipart_upload().bucket("photos").key("film").metadata("a", "1").send().await;
    created.expect("an upload").upload_id().unwrap_or_default().to_owned()
}

async fn part(client: &Client, id: &str, number: i32, text: &str) -> CompletedPart {
    let upload = client.upload_part().bucket("photos").key("film").upload_id(id).part_number(number);
    let tag = upload.body(body(text)).send().await.expect("a part").e_tag().map(str::to_owned);
    CompletedPart::builder().part_number(number).set_e_tag(tag).build()
}

async fn complete(client: &Client, id: &str, parts: &[&CompletedPart]) -> Result<String, (String, u16)> {
    let parts = parts.iter().map(|part| (*part).clone()).collect();
    let upload = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
    let call = client.complete_multipart_upload().bucket("photos").key("film").upload_id(id);
    match call.multipart_upload(upload).send().await {
        Ok(output) => Ok(output.e_tag().unwrap_or_default().to_owned()),
        refusal => Err(refused(refusal)),
    }
}

#[tokio::test(start_paused = true)]
async fn parts_become_one_object() {
    let (store, client) = small_parts();
    let id = start(&client).await;
    let (second, first) = (part(&client, &id, 7, "de").await, part(&client, &id, 2, "abc").await);
    assert!(store.objects("photos").is_empty());
    let tag = complete(&client, &id, &[&first, &second]).await.expect("complete");
    assert!(tag.ends_with("-2\""), "{tag}");
    assert_eq!(store.objects("photos")["film"], "abcde");
    assert_eq!(store.bucket("photos").map(|bucket| bucket.uploads), Some(0));
    let head = client.head_object().bucket("photos").key("film").send().await.expect("an object");
    assert_eq!(head.metadata().and_then(|metadata| metadata.get("a")).map(String::as_str), Some("1"));
    assert_eq!(complete(&client, &id, &[&first, &second]).await, Err(code("NoSuchUpload", 404)));
}

#[tokio::test(start_paused = true)]
async fn the_list_of_parts_is_checked() {
    let (_, client) = small_parts();
    let id = start(&client).await;
    let (first, second) = (part(&client, &id, 1, "ab").await, part(&client, &id, 2, "cde").await);
    assert_eq!(complete(&client, &id, &[]).await, Err(code("MalformedXML", 400)));
    assert_eq!(complete(&client, &id, &[&second, &first]).await, Err(code("InvalidPartOrder", 400)));
    assert_eq!(complete(&client, &id, &[&first, &second]).await, Err(code("EntityTooSmall", 400)));
    let wrong = CompletedPart::builder().part_number(2).e_tag("\"other\"").build();
    assert_eq!(complete(&client, &id, &[&wrong]).await, Err(code("InvalidPart", 400)));
    let absent = CompletedPart::builder().part_number(3).e_tag("\"other\"").build();
    assert_eq!(complete(&client, &id, &[&absent]).await, Err(code("InvalidPart", 400)));
    complete(&client, &id, &[&second]).await.expect("some of the parts");
}

#[tokio::test(start_paused = true)]
async fn part_numbers_have_bounds() {
    let (_, client) = small_parts();
    let id = start(&client).await;
    for number in [0, 10_001] {
        let upload = client.upload_part().bucket("photos").key("film").upload_id(&id).part_number(number);
        assert_eq!(refused(upload.send().await), code("InvalidArgument", 400));
    }
}

#[tokio::test(start_paused = true)]
async fn an_aborted_upload_is_gone() {
    let (store, client) = small_parts();
    let id = start(&client).await;
    let abort = || client.abort_multipart_upload().bucket("photos").key("film").upload_id(&id).send();
    abort().await.expect("an upload");
    assert_eq!(refused(abort().await), code("NoSuchUpload", 404));
    assert_eq!(store.bucket("photos").map(|bucket| bucket.uploads), Some(0));
    let other_key = client.abort_multipart_upload().bucket("photos").key("x").upload_id(&id).send().await;
    assert_eq!(refused(other_key), code("NoSuchUpload", 404));
}

#[tokio::test(start_paused = true)]
async fn parts_are_copied_from_objects() {
    let (store, client) = small_parts();
    store.put_object("photos", "from", "0123456789");
    let id = start(&client).await;
    let copy = |number, range: &str| {
        let copy = client.upload_part_copy().bucket("photos").key("film").upload_id(&id).part_number(number);
        copy.copy_source("photos/from").copy_source_range(range).send()
    };
    let result = copy(1, "bytes=2-5").await.expect("a part");
    let tag = result.copy_part_result().and_then(|result| result.e_tag()).map(str::to_owned);
    let completed = CompletedPart::builder().part_number(1).set_e_tag(tag).build();
    assert_eq!(refused(copy(2, "bytes=2-10").await), code("InvalidArgument", 400));
    complete(&client, &id, &[&completed]).await.expect("complete");
    assert_eq!(store.objects("photos")["film"], "2345");
}

#[tokio::test(start_paused = true)]
async fn parts_and_uploads_are_listed_in_pages() {
    let (store, client) = small_parts();
    let id = start(&client).await;
    for number in [1, 3, 5] {
        part(&client, &id, number, "abc").await;
    }
    let mut numbers = Vec::new();
    let list = client.list_parts().bucket("photos").key("film").upload_id(&id);
    let mut pages = list.into_paginator().send();
    while let Some(page) = pages.next().await {
        numbers.extend(page.expect("a page").parts().iter().filter_map(|part| part.part_number()));
    }
    assert_eq!(numbers, [1, 3, 5]);
    let expected: Vec<String> =
        [start(&client).await, start(&client).await].into_iter().chain(store.start_upload("photos", "other")).collect();
    let (mut seen, mut key, mut marker) = (Vec::new(), None, None);
    loop {
        let list = client.list_multipart_uploads().bucket("photos");
        let page = list.set_key_marker(key).set_upload_id_marker(marker).send().await.expect("a page");
        seen.extend(page.uploads().iter().filter_map(|upload| upload.upload_id().map(str::to_owned)));
        if page.is_truncated() != Some(true) {
            break;
        }
        (key, marker) = (page.next_key_marker().map(str::to_owned), page.next_upload_id_marker().map(str::to_owned));
    }
    assert_eq!(seen, [vec![id], expected].concat());
}
