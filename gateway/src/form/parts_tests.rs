use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn boundary() -> Boundary {
    Boundary("b0undary".into())
}

fn part(head: &str, value: &str) -> String {
    format!("--b0undary\r\n{head}\r\n\r\n{value}\r\n")
}

fn field(name: &str, value: &str) -> String {
    part(&format!("Content-Disposition: form-data; name=\"{name}\""), value)
}

const FILE: &str = "--b0undary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\
                    Content-Type: text/plain\r\n\r\n";

fn push_all(text: &[u8], size: usize) -> Result<Option<Found>, Code> {
    let mut reader = Reader::new(&boundary());
    let mut pieces = text.chunks(size.max(1));
    while let Some(piece) = pieces.next() {
        let found = reader.push(Bytes::copy_from_slice(piece)).map_err(|refusal| refusal.code)?;
        if let Some(mut found) = found {
            let [_, last] = &mut found.rest;
            *last = [&last[..], &pieces.collect::<Vec<_>>().concat()].concat().into();
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn refused(text: &str) -> Option<Code> {
    push_all(text.as_bytes(), usize::MAX).err()
}

#[test]
fn fields_stand_before_the_file() {
    let prefix = [
        &*field("KEY", "a/${filename}"),
        &part("content-type: text/plain\r\nCONTENT-DISPOSITION:form-data ;name=acl;filename=x", "private"),
        &field("x-amz-meta-a", "line\r\n--b0undar\r\nline"),
        &field("empty", ""),
        FILE,
    ]
    .concat();
    let whole = format!("{prefix}data\r\n--b0undary--\r\n");
    for size in (1..40).chain([usize::MAX]) {
        let found = push_all(whole.as_bytes(), size).expect("it can be read").expect("there is a file");
        let fields: Vec<_> = found.form.fields.iter().map(|f| (f.name.as_str(), f.value.as_str())).collect();
        let meta = ("x-amz-meta-a", "line\r\n--b0undar\r\nline");
        assert_eq!(fields, [("key", "a/${filename}"), ("acl", "private"), meta, ("empty", "")]);
        assert_eq!(found.form.filename, "a.txt");
        assert_eq!(found.prefix, u64::try_from(prefix.len()).expect("a length"));
        assert_eq!(found.rest.concat(), b"data\r\n--b0undary--\r\n", "pieces of {size}");
    }
}

#[rstest]
#[case("form-data; name=\"file\"; filename=\"C:\\dir\\a.txt\"", "a.txt")]
#[case("form-data; name=\"file\"; filename=\"/dir/a b.txt\"", "a b.txt")]
#[case("form-data; name=file; filename=a.txt", "a.txt")]
#[case("form-data; filename=\"a\\\"b;c=d.txt\"; name=\"file\"", "a\"b;c=d.txt")]
#[case("form-data; name=\"file\"; filename=\"é.txt\";", "é.txt")]
#[case("FORM-DATA;NAME=\"file\"", "")]
#[case("form-data; name=\"file\"; filename=\"dir/\"", "")]
fn a_file_has_a_name(#[case] disposition: &str, #[case] expected: &str) {
    let text = part(&format!("Content-Disposition: {disposition}"), "");
    let found = push_all(text.as_bytes(), 7).expect("it can be read").expect("there is a file");
    assert_eq!(found.form.filename, expected);
}

#[rstest]
#[case::preamble("text\r\n--b0undary\r\n", Code::MalformedPOSTRequest)]
#[case::another_boundary("--boundary\r\nContent-", Code::MalformedPOSTRequest)]
#[case::no_line("--b0undaryContent-", Code::MalformedPOSTRequest)]
#[case::no_file(&format!("{}--b0undary--\r\n", field("key", "k")), Code::InvalidArgument)]
#[case::no_head("--b0undary\r\n\r\nvalue", Code::MalformedPOSTRequest)]
#[case::no_disposition(&part("Content-Type: text/plain", ""), Code::MalformedPOSTRequest)]
#[case::another_disposition(&part("Content-Disposition: attachment; name=\"a\"", ""), Code::MalformedPOSTRequest)]
#[case::no_name(&part("Content-Disposition: form-data; filename=\"a\"", ""), Code::MalformedPOSTRequest)]
#[case::empty_name(&field("", ""), Code::MalformedPOSTRequest)]
#[case::two_names(&part("Content-Disposition: form-data; name=\"a\"; name=\"file\"", ""), Code::MalformedPOSTRequest)]
#[case::two_dispositions(
    &part("Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\"", ""),
    Code::MalformedPOSTRequest
)]
#[case::no_closing_quote(&part("Content-Disposition: form-data; name=\"a", ""), Code::MalformedPOSTRequest)]
#[case::behind_the_quote(&part("Content-Disposition: form-data; name=\"a\"b", ""), Code::MalformedPOSTRequest)]
#[case::no_colon(&part("Content-Disposition", ""), Code::MalformedPOSTRequest)]
#[case::coded(
    &part("Content-Disposition: form-data; name=\"file\"\r\nContent-Transfer-Encoding: base64", ""),
    Code::MalformedPOSTRequest
)]
#[case::twice(&format!("{}{}{FILE}", field("key", "a"), field("Key", "b")), Code::MalformedPOSTRequest)]
fn another_form_is_refused(#[case] text: &str, #[case] expected: Code) {
    assert_eq!(refused(text), Some(expected));
}

#[test]
fn what_means_nothing_may_be_there_twice() {
    let text = [&*field("x-ignore-a", "1"), &field("x-ignore-a", "2"), FILE].concat();
    assert_eq!(refused(&text), None);
}

#[test]
fn values_are_utf_8() {
    let text =
        [b"--b0undary\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff", &b"\r\n--b0undary"[..]].concat();
    assert_eq!(push_all(&text, 9).map(|_| ()), Err(Code::MalformedPOSTRequest));
}

#[test]
fn everything_has_a_bound() {
    let fields = |count: usize| (0..count).map(|number| field(&format!("f{number}"), "")).collect::<String>() + FILE;
    assert_eq!((refused(&fields(64)), refused(&fields(65))), (None, Some(Code::EntityTooLarge)));

    let around = field("a", "").len() + FILE.len();
    let long = |length: usize| field("a", &"x".repeat(length - around)) + FILE;
    assert_eq!((refused(&long(MAX_PREFIX)), refused(&long(MAX_PREFIX + 1))), (None, Some(Code::EntityTooLarge)));

    let head = "Content-Disposition: form-data; name=\"file\"";
    let padded = |length: usize| part(&format!("{head}\r\nx:{}", "x".repeat(length - head.len() - 4)), "");
    let (longest, longer) = (padded(MAX_PART_HEAD), padded(MAX_PART_HEAD + 1));
    assert_eq!((refused(&longest), refused(&longer)), (None, Some(Code::MalformedPOSTRequest)));
    let endless = format!("--b0undary\r\n{}", "x".repeat(MAX_PART_HEAD + 100));
    assert_eq!(refused(&endless), Some(Code::MalformedPOSTRequest));

    let mut reader = Reader::new(&boundary());
    let piece = Bytes::from(field("a", &"x".repeat(10 * MAX_PREFIX)));
    assert!(reader.push(piece).is_err());
    let capacity = reader.window.bytes.capacity();
    assert!(capacity <= 2 * MAX_PREFIX, "{capacity}");
}

#[test]
fn heads_have_a_bound_in_all_pieces() {
    let head = "Content-Disposition: form-data; name=\"file\"";
    let padded = |length: usize| part(&format!("{head}\r\nx:{}", "x".repeat(length - head.len() - 4)), "");
    for size in [1, 3, 1000] {
        let pushed = |length: usize| push_all(padded(length).as_bytes(), size).map(|found| found.is_some());
        assert_eq!(pushed(MAX_PART_HEAD), Ok(true), "pieces of {size}");
        assert_eq!(pushed(MAX_PART_HEAD + 1), Err(Code::MalformedPOSTRequest), "pieces of {size}");
    }
}

#[test]
fn heads_have_few_lines_and_parameters() {
    let lines = |count: usize| {
        let others: String = (1..count).map(|number| format!("\r\nx-{number}: y")).collect();
        refused(&part(&format!("Content-Disposition: form-data; name=\"file\"{others}"), ""))
    };
    assert_eq!((lines(16), lines(17)), (None, Some(Code::MalformedPOSTRequest)));
    let parameters = |count: usize| {
        let others: String = (2..count).map(|number| format!("; x{number}=y")).collect();
        refused(&part(&format!("Content-Disposition: form-data; name=file{others}; filename=a"), ""))
    };
    assert_eq!((parameters(8), parameters(9)), (None, Some(Code::MalformedPOSTRequest)));
}

/// The sender of a form isn't authenticated yet, so its cost must be linear in its bytes, in pieces
/// of any size.
#[test]
fn no_byte_is_looked_at_for_each_that_follows() {
    let parameters: String = (0..6).map(|number| format!("; x{number}=\"{}\"", "x".repeat(600))).collect();
    let heavy = format!("Content-Disposition: form-data; name=a{parameters}\r\nx: y");
    let many: String = (0..60).map(|number| field(&format!("f{number}"), "value")).collect();
    let forms = [
        part(&heavy, &"y".repeat(15_000)),
        part("Content-Disposition: form-data; name=a", &"\r\n--b0undar".repeat(1_000)),
        many + &part(&heavy, "") + FILE,
    ];
    for form in &forms {
        for size in [1, 2, 100, usize::MAX] {
            let mut reader = Reader::new(&boundary());
            for piece in form.as_bytes().chunks(size.min(form.len())) {
                reader.push(Bytes::copy_from_slice(piece)).expect("it can be read");
            }
            // A delimiter's width for each byte searched, and once more to read it.
            let bound = form.len() * (boundary().delimiter().len() + 2);
            assert!(reader.window.looked <= bound, "{} of {bound} in pieces of {size}", reader.window.looked);
        }
    }
}

#[rstest]
#[case("multipart/form-data; boundary=abc", Some("abc"))]
#[case("Multipart/Form-Data;charset=utf-8; Boundary=\"a b:c\"", Some("a b:c"))]
#[case("multipart/form-data; boundary=", None)]
#[case("multipart/form-data; boundary=\"a \"", None)]
#[case("multipart/form-data; boundary=\"a\\\"b\"", None)]
#[case("multipart/form-data; boundary=a; boundary=b", None)]
#[case("multipart/form-data; boundary=aé", None)]
#[case("multipart/form-data", None)]
fn a_content_type_names_the_boundary(#[case] text: &str, #[case] expected: Option<&str>) {
    let read = Boundary::of(text).map_err(|refusal| refusal.code);
    let expected = expected.map(|text| Some(Boundary(text.into()))).ok_or(Code::MalformedPOSTRequest);
    assert_eq!(read, expected);
}

#[test]
fn boundaries_have_a_longest_length() {
    let of = |length: usize| Boundary::of(&format!("multipart/form-data; boundary={}", "b".repeat(length)));
    assert!(of(70).is_ok() && of(71).is_err());
    assert_eq!(Boundary::of("application/xml; boundary=a"), Ok(None));
}

proptest! {
    #[test]
    fn anything_may_come(
        bytes: Vec<u8>,
        text in "(--b0undary|\r\n|name=|\"|;|Content-Disposition: form-data|file|[a-z]){0,40}",
        size in 1usize..50,
    ) {
        for bytes in [&bytes[..], text.as_bytes(), format!("--b0undary\r\n{text}").as_bytes()] {
            let (one, other) = (push_all(bytes, size), push_all(bytes, usize::MAX));
            prop_assert_eq!(one.map(|found| found.map(|f| f.form)), other.map(|found| found.map(|f| f.form)));
        }
    }
}
