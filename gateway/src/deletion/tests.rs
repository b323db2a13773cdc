use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn object(key: &str) -> Doomed {
    let key = Key::parse(key.as_bytes()).expect("a key");
    Doomed { key, version: None, etag: None, modified: None, size: None }
}

fn read(document: &str) -> Result<Deletion, Code> {
    Deletion::read(document.as_bytes()).map_err(|refusal| refusal.code)
}

fn of_keys(keys: &[&str]) -> Deletion {
    Deletion { objects: keys.iter().map(|key| object(key)).collect(), repeated: Vec::new(), answer: Answer::Full }
}

fn keys(document: &str) -> Vec<String> {
    let read = read(document).unwrap_or_else(|code| panic!("{code:?}: {document}"));
    read.keys().map(|key| key.as_str().to_owned()).collect()
}

fn many(times: usize) -> String {
    let objects: String = (0..times).map(|at| format!("<Object><Key>{at}</Key></Object>")).collect();
    format!("<Delete>{objects}</Delete>")
}

#[test]
fn a_document_is_read_with_all_that_it_may_say() {
    let document = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n\
        <Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\r\n  <Quiet> True </Quiet>\r\n\
        \t<Object><VersionId>null</VersionId><Key>a b</Key><ETag>\"7\"</ETag>\
        <LastModifiedTime>Wed, 21 Oct 2026 07:28:00 GMT</LastModifiedTime><Size>0</Size></Object>\n\
        <Object >\n<Key>c</Key >\n</Object>\n</Delete>\n";
    let first = Doomed {
        version: Some("null".into()),
        etag: Some("\"7\"".into()),
        modified: Some("Wed, 21 Oct 2026 07:28:00 GMT".into()),
        size: Some(0),
        ..object("a b")
    };
    let expected = Deletion { objects: vec![first, object("c")], repeated: Vec::new(), answer: Answer::Errors };
    assert_eq!(read(document), Ok(expected.clone()));
    let written = expected.written().expect("it is short");
    assert_eq!(
        String::from_utf8_lossy(&written),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <Object><Key>a b</Key><VersionId>null</VersionId><ETag>\"7\"</ETag>\
         <LastModifiedTime>Wed, 21 Oct 2026 07:28:00 GMT</LastModifiedTime><Size>0</Size></Object>\
         <Object><Key>c</Key></Object><Quiet>true</Quiet></Delete>"
    );
}

/// A key is XML text, without any percent-encoding.
#[rstest]
#[case("a&amp;b&lt;c&gt;d&quot;e&apos;f", "a&b<c>d\"e'f")]
#[case("a&#13;b&#x0A;c&#9;d", "a\rb\nc\td")]
#[case("a\r\nb\rc\n", "a\nb\nc\n")]
#[case(" a ", " a ")]
#[case("<![CDATA[a&b<c>]]>d", "a&b<c>d")]
#[case("a&#x1F600;\u{1f600}", "a\u{1f600}\u{1f600}")]
#[case("in%2F..%2Fout", "in%2F..%2Fout")]
#[case("a&amp;#13;b", "a&#13;b")]
#[case("a//b/", "a//b/")]
fn a_key_is_read_as_xml_has_it_and_survives(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(keys(&format!("<Delete><Object><Key>{text}</Key></Object></Delete>")), [expected]);
    let written = of_keys(&[expected]).written().expect("it is short");
    let written = String::from_utf8(written).expect("text");
    assert_eq!(keys(&written), [expected], "{written}");
    assert!(!written.contains(['\r', '\t']), "{written}");
}

// covers: 6.deleteObjects.written
#[rstest]
#[case("a\rb\nc\td", "a&#13;b&#10;c&#9;d")]
#[case(" a b ", "&#32;a b&#32;")]
#[case("\u{85}a\u{2028}b\u{3000}", "&#133;a&#8232;b&#12288;")]
#[case("a&b<c>", "a&amp;b&lt;c&gt;")]
#[case("]]>", "]]&gt;")]
#[case("&#13;", "&amp;#13;")]
fn what_a_reader_might_change_is_a_reference(#[case] key: &str, #[case] expected: &str) {
    let written = of_keys(&[key]).written().expect("it is short");
    let written = String::from_utf8(written).expect("text");
    assert!(written.contains(&format!("<Key>{expected}</Key>")), "{written}");
}

// covers: 6.deleteObjects.strict
#[rstest]
#[case::nothing("")]
#[case::text("a")]
#[case::no_object("<Delete></Delete>")]
#[case::empty("<Delete/>")]
#[case::quiet_alone("<Delete><Quiet>true</Quiet></Delete>")]
#[case::cut("<Delete><Object><Key>a</Key></Object>")]
#[case::cut_behind_a_blank("<Delete><Object><Key>a</Key></Object> ")]
#[case::cut_in_an_object("<Delete><Object><Key>a</Key> ")]
#[case::another_root("<Remove><Object><Key>a</Key></Object></Remove>")]
#[case::two_roots("<Delete><Object><Key>a</Key></Object></Delete><Delete/>")]
#[case::text_behind("<Delete><Object><Key>a</Key></Object></Delete>x")]
#[case::comment_behind("<Delete><Object><Key>a</Key></Object></Delete><!-- x -->")]
#[case::other_end("<Delete><Object><Key>a</Object></Key></Delete>")]
#[case::document_type("<!DOCTYPE Delete><Delete><Object><Key>a</Key></Object></Delete>")]
#[case::entity("<!DOCTYPE Delete [<!ENTITY k \"a\">]><Delete><Object><Key>&k;</Key></Object></Delete>")]
#[case::unknown_entity("<Delete><Object><Key>&k;</Key></Object></Delete>")]
#[case::html_entity("<Delete><Object><Key>&nbsp;</Key></Object></Delete>")]
#[case::half_a_reference("<Delete><Object><Key>a&b</Key></Object></Delete>")]
#[case::no_character("<Delete><Object><Key>&#1;</Key></Object></Delete>")]
#[case::zero("<Delete><Object><Key>a&#0;</Key></Object></Delete>")]
#[case::surrogate("<Delete><Object><Key>&#xD800;</Key></Object></Delete>")]
#[case::not_a_character("<Delete><Object><Key>&#xFFFE;</Key></Object></Delete>")]
#[case::control("<Delete><Object><Key>a\u{1}</Key></Object></Delete>")]
#[case::signed_reference("<Delete><Object><Key>&#+65;</Key></Object></Delete>")]
#[case::no_key("<Delete><Object></Object></Delete>")]
#[case::version_alone("<Delete><Object><VersionId>7</VersionId></Object></Delete>")]
#[case::empty_key("<Delete><Object><Key/></Object></Delete>")]
#[case::two_keys("<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>")]
#[case::two_versions("<Delete><Object><Key>a</Key><VersionId>1</VersionId><VersionId>2</VersionId></Object></Delete>")]
#[case::two_quiets("<Delete><Object><Key>a</Key></Object><Quiet>true</Quiet><Quiet>false</Quiet></Delete>")]
#[case::unknown("<Delete><Object><Key>a</Key><Name>b</Name></Object></Delete>")]
#[case::unknown_beside("<Delete><Object><Key>a</Key></Object><Force>true</Force></Delete>")]
#[case::other_case("<Delete><Object><key>a</key></Object></Delete>")]
#[case::nested("<Delete><Object><Object><Key>a</Key></Object></Object></Delete>")]
#[case::nested_in_a_key("<Delete><Object><Key>a<Key>b</Key></Key></Object></Delete>")]
#[case::key_beside("<Delete><Key>a</Key><Object><Key>a</Key></Object></Delete>")]
#[case::text_between("<Delete>a<Object><Key>a</Key></Object></Delete>")]
#[case::reference_between("<Delete>&#32;<Object><Key>a</Key></Object></Delete>")]
#[case::section_between("<Delete><![CDATA[ ]]><Object><Key>a</Key></Object></Delete>")]
#[case::comment("<Delete><!-- --><Object><Key>a</Key></Object></Delete>")]
#[case::comment_in_a_key("<Delete><Object><Key>in/<!-- -->a</Key></Object></Delete>")]
#[case::instruction("<Delete><Object><Key>a<?b?></Key></Object></Delete>")]
#[case::end_of_a_section("<Delete><Object><Key>a]]>b</Key></Object></Delete>")]
#[case::attribute("<Delete><Object><Key xml:space=\"preserve\">a</Key></Object></Delete>")]
#[case::attribute_of_the_root("<Delete a=\"b\"><Object><Key>a</Key></Object></Delete>")]
#[case::other_namespace("<Delete xmlns=\"urn:x\"><Object><Key>a</Key></Object></Delete>")]
#[case::prefixed(
    "<s:Delete xmlns:s=\"http://s3.amazonaws.com/doc/2006-03-01/\"><s:Object><s:Key>a</s:Key></s:Object></s:Delete>"
)]
#[case::namespace_twice(
    "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\" xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
     <Object><Key>a</Key></Object></Delete>"
)]
#[case::newer_xml("<?xml version=\"1.1\"?><Delete><Object><Key>a</Key></Object></Delete>")]
#[case::other_encoding("<?xml version=\"1.0\" encoding=\"UTF-7\"?><Delete><Object><Key>a</Key></Object></Delete>")]
#[case::late_declaration("\n<?xml version=\"1.0\"?><Delete><Object><Key>a</Key></Object></Delete>")]
#[case::two_marks("\u{feff}\u{feff}<Delete><Object><Key>a</Key></Object></Delete>")]
#[case::quiet_in_other_words("<Delete><Object><Key>a</Key></Object><Quiet>yes</Quiet></Delete>")]
#[case::signed_size("<Delete><Object><Key>a</Key><Size>+1</Size></Object></Delete>")]
#[case::no_size("<Delete><Object><Key>a</Key><Size></Size></Object></Delete>")]
fn anything_but_the_document_of_s3_is_refused(#[case] document: &str) {
    assert_eq!(read(document), Err(Code::MalformedXML));
}

// covers: 6.deleteObjects.strict
#[test]
fn other_bytes_than_utf_8_are_refused() {
    let latin = b"<Delete><Object><Key>\xe4</Key></Object></Delete>";
    assert_eq!(Deletion::read(latin).map_err(|refusal| refusal.code), Err(Code::MalformedXML));
    let utf_16: Vec<u8> = many(1).encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(Deletion::read(&utf_16).map_err(|refusal| refusal.code), Err(Code::MalformedXML));
}

// covers: 6.deleteObjects.strict
#[test]
fn there_are_a_thousand_objects_at_most() {
    assert_eq!(read(&many(1000)).map(|read| read.objects().len()), Ok(1000));
    assert_eq!(read(&many(1001)), Err(Code::MalformedXML));
}

// covers: 6.segments
/// A key that is refused in a URL is refused in a document, too.
#[rstest]
#[case("in/../out", Code::InvalidArgument)]
#[case("in/&#46;&#x2e;/out", Code::InvalidArgument)]
#[case("in/.", Code::InvalidArgument)]
#[case("..", Code::InvalidArgument)]
#[case("//", Code::InvalidArgument)]
fn a_key_that_climbs_is_refused(#[case] key: &str, #[case] expected: Code) {
    assert_eq!(read(&format!("<Delete><Object><Key>{key}</Key></Object></Delete>")), Err(expected));
}

#[rstest]
#[case("Key", 1024, Code::KeyTooLongError)]
#[case("Key", 100_000, Code::KeyTooLongError)]
#[case("VersionId", 1024, Code::MalformedXML)]
#[case("ETag", 1024, Code::MalformedXML)]
fn a_text_has_its_length(#[case] name: &str, #[case] longest: usize, #[case] expected: Code) {
    let document = |length: usize| {
        let (text, key) = ("x".repeat(length), if name == "Key" { "" } else { "<Key>a</Key>" });
        format!("<Delete><Object>{key}<{name}>{text}</{name}></Object></Delete>")
    };
    assert_eq!(read(&document(1024)).map(drop), Ok(()));
    assert_eq!(read(&document(longest + 1)), Err(expected));
}

#[rstest]
#[case("7+a=_~.-", Ok(()))]
#[case("", Err(Code::InvalidArgument))]
#[case("..", Err(Code::InvalidArgument))]
#[case("a/b", Err(Code::InvalidArgument))]
#[case("a&#10;", Err(Code::InvalidArgument))]
fn the_id_of_a_version_is_one_that_stores_give(#[case] id: &str, #[case] expected: Result<(), Code>) {
    let document = format!("<Delete><Object><Key>a</Key><VersionId>{id}</VersionId></Object></Delete>");
    assert_eq!(read(&document).map(drop), expected);
}

#[test]
fn what_grows_too_long_by_escapes_is_refused() {
    let section = |at: usize| format!("<Object><Key><![CDATA[{}{at:04}]]></Key></Object>", "&".repeat(1020));
    let sections = |times| (0..times).map(section).collect::<String>();
    let document = format!("<Delete>{}</Delete>", sections(1000));
    assert!(document.len() < 2 << 20);
    let read = read(&document).expect("it is within its bounds");
    assert_eq!(read.written().map_err(|refusal| refusal.code), Err(Code::EntityTooLarge));
    let half = format!("<Delete>{}</Delete>", sections(300));
    let read = Deletion::read(half.as_bytes()).expect("it is within its bounds");
    let written = read.written().expect("it is short enough");
    assert_eq!(written.capacity(), written.len(), "no more is taken than there is");
    assert_eq!(Deletion::read(&written), Ok(read));
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
    };
    lines.iter().map(line).collect()
}

/// Check values for `123456789`, from the CRC catalogue and md5sum.
#[rstest]
#[case("content-md5", "25f9e794323b453885f5181f1b624d0b", Code::BadDigest)]
#[case("x-amz-checksum-crc32", "cbf43926", Code::BadDigest)]
#[case("x-amz-checksum-crc32c", "e3069283", Code::BadDigest)]
#[case("x-amz-checksum-crc64nvme", "ae8b14860a799888", Code::BadDigest)]
#[case("x-amz-checksum-md5", "25f9e794323b453885f5181f1b624d0b", Code::BadDigest)]
fn a_digest_in_the_head_is_held_against_the_body(#[case] name: &'static str, #[case] hex: &str, #[case] other: Code) {
    let value = STANDARD.encode(hex::decode(hex).expect("hex"));
    let right = headers(&[("x-amz-checksum-algorithm", "CRC32"), (name, &value)]);
    assert_eq!(verify(&right, b"123456789"), Ok(()));
    assert_eq!(verify(&right, b"12345678").map_err(|refusal| refusal.code), Err(other));
}

#[rstest]
#[case("content-md5", "AAAA", Code::InvalidDigest)]
#[case("content-md5", "no base64", Code::InvalidDigest)]
#[case("x-amz-checksum-crc32", "AAAA", Code::InvalidRequest)]
#[case("x-amz-checksum-xxhash64", "AAAAAAAAAAA=", Code::NotImplemented)]
#[case("x-amz-checksum-new", "AAAA", Code::NotImplemented)]
fn a_digest_that_cannot_be_verified_is_refused(
    #[case] name: &'static str,
    #[case] value: &str,
    #[case] expected: Code,
) {
    assert_eq!(verify(&headers(&[(name, value)]), b"").map_err(|refusal| refusal.code), Err(expected));
}

// covers: 6.deleteObjects.written
#[test]
fn a_written_document_has_its_own_digest() {
    let mut found = headers(&[
        ("content-md5", "of another"),
        ("content-type", "text/xml; charset=utf-16"),
        ("x-amz-checksum-algorithm", "CRC32"),
        ("x-amz-checksum-crc32", "of another"),
        ("x-amz-checksum-type", "FULL_OBJECT"),
        ("x-amz-expected-bucket-owner", "1"),
        ("x-amz-sdk-checksum-algorithm", "CRC32"),
    ]);
    write_anew(&mut found, b"123456789").expect("it can stand in a header");
    let expected = headers(&[
        ("content-md5", "JfnnlDI7RTiF9RgfG2JNCw=="),
        ("content-type", "application/xml"),
        ("x-amz-expected-bucket-owner", "1"),
    ]);
    assert_eq!(found, expected);
}

/// Returns a text that XML 1.0 can carry, rich in characters that readers treat differently.
fn text() -> impl Strategy<Value = String> {
    let c = prop_oneof![
        proptest::sample::select(vec![' ', '\t', '\n', '\r', '&', '<', '>', '"', '\'', ']', '/', ';', '#', '\u{85}']),
        proptest::sample::select(vec!['\u{2028}', '\u{3000}', '\u{feff}', '\u{fffd}', '\u{10ffff}', '\u{7f}', 'a']),
        any::<char>().prop_filter("it can be carried", |c| crate::xml::is_carried(*c)),
    ];
    proptest::collection::vec(c, 1..12).prop_map(|characters| characters.into_iter().collect())
}

fn doomed() -> impl Strategy<Value = Doomed> {
    let key = text().prop_filter_map("a key", |text| Key::parse(text.as_bytes()).ok());
    let version = proptest::option::of("[A-Za-z0-9_~+=-]{1,12}".prop_map(String::into_boxed_str));
    let free = || proptest::option::of(text().prop_map(String::into_boxed_str));
    (key, version, free(), free(), any::<Option<u64>>()).prop_map(|(key, version, etag, modified, size)| Doomed {
        key,
        version,
        etag,
        modified,
        size,
    })
}

// covers: 6.deleteObjects.again
#[test]
fn an_object_that_is_named_again_is_deleted_once() {
    let named = |objects: &str| Deletion::read(format!("<Delete>{objects}</Delete>").as_bytes());
    let (plain, past) = ("<Object><Key>b</Key></Object>", "<Object><Key>b</Key><VersionId>7</VersionId></Object>");
    let read = named(&format!("{plain}<Object><Key>a</Key></Object>{past}{plain}{past}{plain}")).expect("it is one");
    assert_eq!(read.keys().map(Key::as_str).collect::<Vec<_>>(), ["b", "a", "b"]);
    let (remaining, supplement) = read.without(&BTreeMap::from([(0, None)]));
    assert_eq!(remaining.keys().map(Key::as_str).collect::<Vec<_>>(), ["a", "b"]);
    // The object itself, its two repetitions, and the one of its version: they count by key.
    assert_eq!(supplement.alone().matches("<Deleted><Key>b</Key></Deleted>").count(), 4);
    let other = "<Object><Key>b</Key><ETag>7</ETag></Object>";
    assert_eq!(named(&format!("{plain}{other}")).map_err(|refusal| refusal.code), Err(Code::InvalidArgument));
}

proptest! {
    // covers: 6.deleteObjects.written
    #[test]
    fn what_was_written_is_read_as_the_same(objects in proptest::collection::vec(doomed(), 1..5), quiet: bool) {
        let answer = if quiet { Answer::Errors } else { Answer::Full };
        let name = |object: &Doomed| (object.key.as_str().to_owned(), object.version.clone());
        let names = objects.iter().map(name).collect::<std::collections::BTreeSet<_>>().len();
        prop_assume!(names == objects.len());
        let deletion = Deletion { objects, repeated: Vec::new(), answer };
        let written = deletion.written().expect("it is short");
        prop_assert_eq!(Deletion::read(&written), Ok(deletion));
        prop_assert!(!written.iter().any(|byte| b"\r\t".contains(byte)));
    }

    #[test]
    fn whatever_comes_is_read_or_refused(bytes: Vec<u8>) {
        let _: Result<Deletion, Refusal> = Deletion::read(&bytes);
    }
}
