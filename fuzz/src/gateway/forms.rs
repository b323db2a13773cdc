//! Uploads by a form. The first line of an input is the content type, the second the sizes of the
//! pieces in which the body arrives (`1,5,3`), the third a policy, and the rest the body. In it
//! `@policy` is replaced by the encoded policy, `@credential` by its credential, and `@signature`
//! by its signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use stowage_gateway::form::{self, Boundary, Form};
use stowage_gateway::refusal::Code;

use super::{pieces, reading, run, signing};

const BUCKET: &str = "photos";

/// An input.
struct Case {
    content_type: String,
    boundary: Boundary,
    sizes: Vec<usize>,
    policy: Vec<u8>,
    body: Vec<u8>,
}

impl Case {
    fn read(input: &[u8]) -> Option<Self> {
        let (content_type, rest) = reading::split(input, b'\n');
        let (cut, rest) = reading::split(rest?, b'\n');
        let (policy, body) = reading::split(rest?, b'\n');
        let content_type = str::from_utf8(content_type).ok()?.to_owned();
        let boundary = Boundary::of(&content_type).ok()??;
        let text = STANDARD.encode(policy);
        let signature = signing::sign(text.as_bytes());
        let credential = format!("{}/{}", signing::KEY_ID, signing::SCOPE);
        let words = [("@policy", text), ("@credential", credential), ("@signature", signature)];
        let body = words.iter().fold(body?.to_vec(), |body, (word, text)| replaced(&body, word.as_bytes(), text));
        Some(Self { content_type, boundary, sizes: pieces::sizes(cut), policy: policy.to_vec(), body })
    }
}

fn replaced(body: &[u8], word: &[u8], text: &str) -> Vec<u8> {
    match body.windows(word.len()).position(|window| window == word) {
        Some(at) => [&body[..at], text.as_bytes(), &body[at + word.len()..]].concat(),
        None => body.to_vec(),
    }
}

/// Result of a form: its fields, the decision of its policy, and the file that is stored.
#[derive(Debug, PartialEq)]
struct Outcome {
    form: Form,
    judged: Result<bool, Code>,
    file: Result<Vec<u8>, Code>,
}

/// Checks that the result of a form doesn't depend on how it arrives, that fields and file are the
/// data between the delimiters, and that an allowed upload satisfies each condition of the policy.
pub(crate) fn play(input: &[u8]) {
    let Some(case) = Case::read(input) else { return };
    let mut seen = Vec::new();
    for cut in pieces::cuts(&case.sizes) {
        seen.push(run(outcome(&case, &cut)));
    }
    // If the whole file arrives with its beginning, its errors are reported earlier, so errors are
    // compared without that difference.
    let refused = |one: &Result<Outcome, Code>| {
        one.as_ref().map_or_else(|code| Some(*code), |it| it.file.as_ref().err().copied())
    };
    assert!(seen.iter().all(|one| refused(one) == refused(&seen[0])), "a cut changes it: {seen:?}");
    let mut read = seen.iter().filter_map(|one| one.as_ref().ok());
    let Some(outcome) = read.next() else { return };
    assert!(read.all(|other| other == outcome), "a cut changes it: {seen:?}");
    let parts = parts(&case);
    let fields = outcome.form.fields();
    let values: Vec<&[u8]> = fields.iter().map(|field| field.value.as_bytes()).collect();
    let before: Vec<&[u8]> = parts.iter().take(fields.len()).map(|part| part.1.as_slice()).collect();
    assert_eq!(values, before, "the fields");
    for (field, (head, _)) in fields.iter().zip(&parts) {
        let plain = !field.name.contains('"');
        assert!(!plain || String::from_utf8_lossy(head).to_ascii_lowercase().contains(&field.name), "{}", field.name);
    }
    // Some parsers take that for the end of an empty part.
    let end = case.body.windows(2).position(|window| window == b"\r\n").expect("a first line");
    let start = &case.body[..end];
    for part in values.iter().copied().chain(outcome.file.as_deref().ok()) {
        assert!(!part.starts_with(start), "a part begins with the boundary");
    }
    if let Ok(file) = &outcome.file {
        assert_eq!(Some(file), parts.get(fields.len()).map(|(_, body)| body), "the file");
    }
    if outcome.judged == Ok(true) {
        let long = outcome.file.as_ref().ok().map(Vec::len);
        keeps(&case, &outcome.form, long);
    }
}

async fn outcome(case: &Case, cut: &[usize]) -> Result<Outcome, Code> {
    let body = pieces::body(&case.body, cut);
    let (form, file) = form::read(body, case.boundary.clone()).await.map_err(|refusal| refusal.code)?;
    let claim = form::claim(&form).map_err(|refusal| refusal.code);
    let policy = claim.map(|claim| {
        claim.map(|claim| {
            let verify = |secret| claim.verify(&form, BUCKET, &secret, signing::REGION, signing::now());
            assert!(verify(signing::other_secret()).is_err(), "it is believed by another key");
            verify(signing::secret()).map_err(|refusal| refusal.code)
        })
    });
    let long = case.body.len() as u64;
    let file = match file.measured(Some(long)).await {
        Ok(measured) => {
            let (bytes, broken) = pieces::all(measured.body).await;
            let whole = bytes.len() as u64;
            assert!(if broken.is_some() { whole < measured.length } else { whole == measured.length }, "{broken:?}");
            broken.map_or(Ok(bytes), Err)
        }
        Err(refusal) => Err(refusal.code),
    };
    let judged = match policy {
        Ok(Some(Ok(policy))) => {
            let fits = |bytes: &Vec<u8>| policy.check_length(bytes.len() as u64).map_err(|refusal| refusal.code);
            file.as_ref().map_or(Ok(true), |bytes| fits(bytes).map(|()| true))
        }
        Ok(None) => Ok(false),
        Ok(Some(Err(code))) | Err(code) => Err(code),
    };
    Ok(Outcome { form, judged, file })
}

/// Returns the data between the delimiters: head and body of each part that has both. The first
/// line is the boundary.
fn parts(case: &Case) -> Vec<(Vec<u8>, Vec<u8>)> {
    let whole = [b"\r\n", case.body.as_slice()].concat();
    let end = case.body.windows(2).position(|window| window == b"\r\n").expect("a first line");
    let (delimiter, mut rest) = whole.split_at(2 + end);
    let boundary = String::from_utf8_lossy(&delimiter[4..]);
    assert!(
        case.content_type.replace('\\', "").contains(&*boundary),
        "{boundary} is not that of {}",
        case.content_type
    );
    let mut found = Vec::new();
    let place = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|window| window == what);
    while let Some(end) = place(rest, b"\r\n\r\n") {
        let (head, body) = (&rest[..end], &rest[end + 4..]);
        let end = place(body, delimiter);
        found.push((head.to_vec(), body[..end.unwrap_or(body.len())].to_vec()));
        rest = end.map_or(&[][..], |end| &body[end + delimiter.len()..]);
    }
    found
}

/// Checks that each condition of the policy, parsed as plain JSON, is satisfied, and that each
/// field has a condition.
fn keeps(case: &Case, form: &Form, long: Option<usize>) {
    let policy: Value = serde_json::from_slice(&case.policy).expect("it was read");
    let value = |name: &str| match name {
        "bucket" => BUCKET.to_owned(),
        "key" => form.key().expect("it has one"),
        other => form.get(other).unwrap_or_default().to_owned(),
    };
    let mut about = Vec::new();
    for condition in policy["conditions"].as_array().expect("it was read") {
        if let Some(exact) = condition.as_object() {
            for (name, expected) in exact {
                let name = name.to_ascii_lowercase();
                assert_eq!(Some(value(&name).as_str()), expected.as_str(), "{name}");
                about.push(name);
            }
            continue;
        }
        let number = |at: usize| condition[at].as_u64().or_else(|| condition[at].as_str()?.parse().ok());
        match condition[0].as_str() {
            Some("content-length-range") => {
                let range = number(1).expect("a length")..=number(2).expect("a length");
                assert!(long.is_none_or(|long| range.contains(&(long as u64))), "{long:?} is not in {range:?}");
            }
            Some(kind @ ("eq" | "starts-with")) => {
                let name = condition[1].as_str().and_then(|name| name.strip_prefix('$')).expect("a field");
                let (name, expected) = (name.to_ascii_lowercase(), condition[2].as_str().expect("a text"));
                let found = value(&name);
                let holds = if kind == "eq" { found == expected } else { begins(&name, &found, expected) };
                assert!(holds, "{name} is {found:?}, and should be {kind} {expected:?}");
                about.push(name);
            }
            other => panic!("{other:?} is no condition"),
        }
    }
    let exempt = ["file", "policy", "x-amz-signature"];
    for name in form.fields().iter().map(|field| field.name.as_str()).chain(["bucket", "key"]) {
        let is_judged = !exempt.contains(&name) && !name.starts_with("x-ignore-");
        assert!(!is_judged || about.iter().any(|about| about == name), "no condition is about {name}");
    }
    assert!(
        policy["expiration"]
            .as_str()
            .is_some_and(|end| end.parse::<jiff::Timestamp>().is_ok_and(|end| end >= signing::now()))
    );
}

fn begins(name: &str, found: &str, start: &str) -> bool {
    if name != "content-type" {
        return found.starts_with(start);
    }
    found.split(',').all(|one| one.trim().starts_with(start)) || !found.contains(',') && found.starts_with(start)
}
