use proptest::prelude::*;
use rstest::rstest;

use super::*;

const OURS: &str = "<Owner><ID>stowage</ID><DisplayName>stowage</DisplayName></Owner>";

/// Returns the output for a document that arrives in these pieces.
fn shown<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<String, Malformed> {
    of(Document::List, pieces)
}

fn of<'a>(document: Document, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<String, Malformed> {
    let (mut filter, mut out) = (Filter::of(document), BytesMut::new());
    for piece in pieces {
        filter.feed(piece, &mut out)?;
        assert!(filter.tag.len() <= LONGEST_TAG);
    }
    filter.end()?;
    Ok(String::from_utf8(out.to_vec()).expect("text"))
}

#[rstest]
#[case("<L><Owner><ID>7</ID></Owner></L>", &format!("<L>{OURS}</L>"))]
#[case("<L><Owner/><Owner /></L>", &format!("<L>{OURS}{OURS}</L>"))]
#[case("<L><Owner xsi:type=\"a>7\"><ID>7</ID></Owner >k</L>", &format!("<L>{OURS}k</L>"))]
#[case("<L><Owner><a><Owner>7</Owner><b/></a>7<!--7--></Owner></L>", &format!("<L>{OURS}</L>"))]
#[case("<L><Owner><![CDATA[</Owner>7]]></Owner></L>", &format!("<L>{OURS}</L>"))]
#[case(
    "<s:L><s:Initiator><s:ID>7</s:ID></s:Initiator></s:L>",
    "<s:L><s:Initiator><s:ID>stowage</s:ID><s:DisplayName>stowage</s:DisplayName></s:Initiator></s:L>"
)]
#[case("<L><Owners>7</Owners><owner>7</owner></L>", "<L><Owners>7</Owners><owner>7</owner></L>")]
#[case(
    "\u{feff}<?xml version='1.0'?>\n<L a='>'><!-- <Owner> --><K><![CDATA[<Owner>]]]></K></L>\n",
    "\u{feff}<?xml version='1.0'?>\n<L a='>'><!-- <Owner> --><K><![CDATA[<Owner>]]]></K></L>\n"
)]
#[case("<L><K>&lt;Owner&gt;</K></L>", "<L><K>&lt;Owner&gt;</K></L>")]
#[case("<L><?Owner a?><!--> <Owner> --></L>", "<L><?Owner a?><!--> <Owner> --></L>")]
#[case("", "")]
fn an_account_has_our_name(#[case] document: &str, #[case] expected: &str) {
    assert_eq!(shown([document.as_bytes()]).as_deref(), Ok(expected));
    let bytes = document.as_bytes();
    for at in 0..bytes.len() {
        let (one, two) = bytes.split_at(at);
        assert_eq!(shown([one, two]).as_deref(), Ok(expected), "split at {at}");
    }
    assert_eq!(shown(bytes.chunks(1)).as_deref(), Ok(expected));
}

// covers: 6.answers.deletion
#[rstest]
#[case("<DeleteResult/>", "<DeleteResult/>")]
#[case(
    "<DeleteResult xmlns=\"n\"><Deleted><Key>a</Key><DeleteMarker>true</DeleteMarker><Owner>7</Owner></Deleted></DeleteResult>",
    "<DeleteResult xmlns=\"n\"><Deleted><Key>a</Key><DeleteMarker>true</DeleteMarker></Deleted></DeleteResult>"
)]
#[case(
    "<DeleteResult><Error><Code>AccessDenied</Code><Message>arn:7 <b>/srv</b></Message></Error></DeleteResult>",
    "<DeleteResult><Error><Code>AccessDenied</Code><Message>The object was not deleted.</Message></Error></DeleteResult>"
)]
#[case("<Error><HostId>7</HostId><Resource><Key>7</Key></Resource><Key>a</Key></Error>", "<Error><Key>a</Key></Error>")]
#[case("<x:Error><x:Message/></x:Error>", "<x:Error><x:Message>The object was not deleted.</x:Message></x:Error>")]
fn a_result_says_what_s3_has_there(#[case] document: &str, #[case] expected: &str) {
    let bytes = document.as_bytes();
    assert_eq!(of(Document::Deletion, [bytes]).as_deref(), Ok(expected));
    assert_eq!(of(Document::Deletion, bytes.chunks(1)).as_deref(), Ok(expected));
}

#[rstest]
#[case("<!DOCTYPE L [<!ENTITY o '7'>]><L/>", Malformed::DocumentType)]
#[case("<L><![INCLUDE[", Malformed::DocumentType)]
#[case("text", Malformed::NoXml)]
#[case("{\"Owner\": 7}", Malformed::NoXml)]
#[case("\u{1f}\u{8b}", Malformed::NoXml)]
#[case("<\0L\0>\0", Malformed::NoXml)]
#[case("<>", Malformed::NoXml)]
#[case("<L><Owner>7</Ower>7", Malformed::Nesting)]
#[case("<L><Owner>7", Malformed::Early)]
#[case("<L><Own", Malformed::Early)]
#[case("<L><!-- ", Malformed::Early)]
fn what_is_not_understood_breaks_off(#[case] document: &str, #[case] why: Malformed) {
    assert_eq!(shown([document.as_bytes()]), Err(why));
}

#[test]
fn a_tag_has_an_end() {
    let long = format!("<L a='{}'/>", "x".repeat(LONGEST_TAG));
    assert_eq!(shown([long.as_bytes()]), Err(Malformed::LongTag));
}

/// Documents with the elements of a list, and with keys that look like tags.
fn documents() -> impl Strategy<Value = String> {
    let text = "[a-z<>&'\" ]{0,6}".prop_map(|text| quick_xml::escape::escape(text).into_owned());
    let leaf = prop_oneof![
        text.clone(),
        text.prop_map(|text| format!("<!--{text}--><![CDATA[{text}]]>")),
        Just("<Owner/>".to_owned())
    ];
    let element = leaf.prop_recursive(4, 32, 4, |inner| {
        let name = prop::sample::select(vec!["Contents", "Key", "Owner", "Initiator", "x:Owner", "ID"]);
        (name, prop::collection::vec(inner, 0..4)).prop_map(|(name, all)| format!("<{name}>{}</{name}>", all.concat()))
    });
    element.prop_map(|all| format!("<List>{all}</List>"))
}

/// Returns the texts inside and outside of accounts, by an independent parser.
fn texts(document: &str) -> (Vec<String>, String) {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(document);
    let (mut open, mut accounts, mut other) = (Vec::new(), Vec::<String>::new(), String::new());
    let is_account = |name: &[u8]| name == b"Owner" || name == b"Initiator";
    loop {
        let event = reader.read_event().expect("XML");
        let inside = open.iter().any(|name: &Vec<u8>| is_account(name));
        match event {
            Event::Start(start) => {
                let name = start.local_name().as_ref().to_vec();
                if is_account(&name) && !inside {
                    accounts.push(String::new());
                }
                open.push(name);
            }
            Event::Empty(start) if !inside && is_account(start.local_name().as_ref()) => {
                accounts.push(String::new());
            }
            Event::End(_) => drop(open.pop()),
            Event::Eof => return (accounts, other),
            Event::Empty(_) if inside => (),
            event if inside => {
                if let (Some(account), Event::Text(text)) = (accounts.last_mut(), &event) {
                    account.push_str(&text.decode().expect("text"));
                }
            }
            event => other.push_str(&format!("{event:?}")),
        }
    }
}

proptest! {
    #[test]
    fn accounts_are_ours_and_all_else_is_the_stores(
        document in documents(),
        cuts in prop::collection::vec(1_usize..9, 1..9),
    ) {
        let mut pieces = Vec::new();
        let mut rest = document.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        let seen = shown(pieces).expect("it is XML");
        let ((before, kept), (after, shown)) = (texts(&document), texts(&seen));
        prop_assert_eq!(kept, shown);
        prop_assert_eq!(before.len(), after.len());
        prop_assert!(after.iter().all(|account| account == "stowagestowage"), "{}", seen);
    }
}
