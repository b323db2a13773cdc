use rstest::rstest;

use super::*;
use crate::refusal::Code;
use crate::xml::NAMESPACE;

use Operation::{CompleteMultipartUpload, PutObjectTagging};

fn written(operation: Operation, document: &str) -> Result<String, Code> {
    let written = rewritten(operation, document.as_bytes()).map_err(|refusal| refusal.code)?;
    Ok(String::from_utf8(written).expect("text"))
}

fn framed(root: &str, inner: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"{NAMESPACE}\">{inner}</{root}>")
}

// covers: 6.documents
#[rstest]
#[case("<Tagging><TagSet></TagSet></Tagging>", "<TagSet></TagSet>")]
#[case(
    "<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"> <TagSet><Tag><Value/><Key>a &amp; b</Key></Tag></TagSet>\n</Tagging>",
    "<TagSet><Tag><Key>a &amp; b</Key><Value></Value></Tag></TagSet>"
)]
#[case(
    "<Tagging><TagSet><Tag><Key><![CDATA[<a>]]></Key><Value>\u{e4}\r\n</Value></Tag></TagSet></Tagging>",
    "<TagSet><Tag><Key>&lt;a&gt;</Key><Value>\u{e4}&#10;</Value></Tag></TagSet>"
)]
fn tags_are_written_for_the_store(#[case] document: &str, #[case] inner: &str) {
    assert_eq!(written(PutObjectTagging, document), Ok(framed("Tagging", inner)));
}

// covers: 6.documents
#[rstest]
#[case(
    "<CompleteMultipartUpload><Part><ETag>&quot;e&quot;</ETag><PartNumber>01</PartNumber></Part></CompleteMultipartUpload>",
    "<Part><PartNumber>1</PartNumber><ETag>\"e\"</ETag></Part>"
)]
#[case(
    "<CompleteMultipartUpload><Part><PartNumber>2</PartNumber><ETag>e</ETag><ChecksumCRC32>a==</ChecksumCRC32></Part></CompleteMultipartUpload>",
    "<Part><PartNumber>2</PartNumber><ETag>e</ETag><ChecksumCRC32>a==</ChecksumCRC32></Part>"
)]
fn parts_are_written_for_the_store(#[case] document: &str, #[case] inner: &str) {
    assert_eq!(written(CompleteMultipartUpload, document), Ok(framed("CompleteMultipartUpload", inner)));
}

// covers: 6.documents
#[rstest]
#[case(PutObjectTagging, "")]
#[case(PutObjectTagging, "<Tagging/>")]
#[case(PutObjectTagging, "<Tagging><TagSet/><TagSet/></Tagging>")]
#[case(PutObjectTagging, "<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>")]
#[case(PutObjectTagging, "<Tagging><TagSet><Tag><Key>a</Key><Key>b</Key><Value/></Tag></TagSet></Tagging>")]
#[case(PutObjectTagging, "<!DOCTYPE a><Tagging><TagSet/></Tagging>")]
#[case(PutObjectTagging, "<Tagging><TagSet><!-- --></TagSet></Tagging>")]
#[case(PutObjectTagging, "<CompleteMultipartUpload/>")]
#[case(CompleteMultipartUpload, "<CompleteMultipartUpload/>")]
#[case(CompleteMultipartUpload, "<CompleteMultipartUpload><Part><ETag>e</ETag></Part></CompleteMultipartUpload>")]
#[case(
    CompleteMultipartUpload,
    "<CompleteMultipartUpload><Part><PartNumber>+1</PartNumber><ETag>e</ETag></Part></CompleteMultipartUpload>"
)]
#[case(
    CompleteMultipartUpload,
    "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>e</ETag><Key>../a</Key></Part></CompleteMultipartUpload>"
)]
#[case(PutObjectTagging, "<Tagging><TagSet/></Tagging>a")]
fn anything_but_the_operations_document_is_refused(#[case] operation: Operation, #[case] document: &str) {
    assert_eq!(written(operation, document), Err(Code::MalformedXML));
}

// covers: 6.documents.order
#[rstest]
#[case(&[1, 2, 7, 10_000], None)]
#[case(&[1, 1], Some(Code::InvalidPartOrder))]
#[case(&[2, 1], Some(Code::InvalidPartOrder))]
#[case(&[1, 3, 2], Some(Code::InvalidPartOrder))]
#[case(&[0, 1], Some(Code::MalformedXML))]
fn parts_ascend(#[case] numbers: &[u32], #[case] expected: Option<Code>) {
    let part = |number: &u32| format!("<Part><PartNumber>{number}</PartNumber><ETag>e</ETag></Part>");
    let parts: String = numbers.iter().map(part).collect();
    let document = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    assert_eq!(written(CompleteMultipartUpload, &document).err(), expected);
}

// covers: 6.documents
#[test]
fn what_is_written_has_a_bound() {
    let document = |etag: &str, parts: usize| {
        let part = |number| format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", (1..=parts).map(part).collect::<String>())
    };
    let long = document(&">".repeat(1000), 100);
    assert_eq!(written(CompleteMultipartUpload, &long), Err(Code::EntityTooLarge));
    let many = document("\"5d41402abc4b2a76b9719d911017c592\"", 10_000);
    let written_of_many = written(CompleteMultipartUpload, &many).expect("it is one");
    assert_eq!(written(CompleteMultipartUpload, &written_of_many), Ok(written_of_many.clone()), "it is read again");
    assert!((many.len() + written_of_many.capacity()) as u64 <= most_held(many.len() as u64));
    assert_eq!(written(CompleteMultipartUpload, &document("e", 10_001)), Err(Code::MalformedXML));
}
