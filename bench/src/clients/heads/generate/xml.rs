//! Unusual ways to write an XML document: prologs, trailers, and encodings of text.

use super::pen::Pen;

/// Prologs of a document.
const PROLOGS: &[&str] = &[
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
    "<?xml version='1.0' encoding='utf-8' standalone='yes'?>\n",
    "<?xml version=\"1.1\"?>",
    "<?xml version=\"1.0\" encoding=\"UTF-16\"?>",
    "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>",
    "<?xml version=\"1.0\" encoding=\"UTF-7\"?>",
    "\u{feff}",
    "\u{feff}<?xml version=\"1.0\"?>",
    "\u{feff}\u{feff}",
    " \r\n",
    " <?xml version=\"1.0\"?>",
    "<!-- a -->",
    "<?php a ?>",
    "<!DOCTYPE Delete>",
    "<!DOCTYPE Delete [<!ENTITY x \"../NEIGHBOUR/secret/crown.txt\">]>",
    "<!DOCTYPE Delete [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>",
];

/// Attributes of the root element.
const ATTRIBUTES: &[&str] = &[
    " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"",
    " xmlns='http://s3.amazonaws.com/doc/2006-03-01/' ",
    " xmlns=\"http://doc.s3.amazonaws.com/2006-03-01\"",
    " xmlns=\"\"",
    " xmlns:a=\"http://s3.amazonaws.com/doc/2006-03-01/\"",
    " xml:space=\"preserve\"",
    " a='b' a='c'",
    " xmlns=\"http&#58;//s3.amazonaws.com/doc/2006-03-01/\"",
];

/// Trailers of a document.
const ENDS: &[&str] = &["\n", " \t\r\n", "<!-- a -->", "\0", "a", "<Delete/>", "<?a b?>", "]]>", "</Delete>"];

/// Elements that no S3 document has, some of them very similar to one that it has.
const STRANGERS: &[&str] = &[
    "<a/>",
    "<Key/>",
    "<key>k0</key>",
    "<s3:Key>k0</s3:Key>",
    "<Key xml:space=\"preserve\"> k0</Key>",
    "<Key>k0",
    "</Key>",
    "<BypassGovernanceRetention>true</BypassGovernanceRetention>",
    "<!-- a -->",
    "<?a b?>",
    "<![CDATA[<Key>k0</Key>]]>",
    "&amp;",
    "text",
    "<Object><Key>k0</Key></Object>",
];

/// Generates a document with this root element and this content, complete or not.
pub(super) fn document(pen: &mut Pen<'_>, root: &str, inside: &str) -> Vec<u8> {
    let mut document = String::new();
    if pen.chance(70) {
        let prolog = pen.one(PROLOGS);
        document.push_str(&pen.filled(prolog));
    }
    let root = match pen.number(0, 60) {
        0 => root.to_lowercase(),
        1 => format!("s3:{root}"),
        _ => root.to_owned(),
    };
    let attributes = if pen.chance(60) { pen.one(ATTRIBUTES) } else { "" };
    document.push_str(&format!("<{root}{attributes}>{inside}</{root}>"));
    if pen.chance(20) {
        document.push_str(pen.one(ENDS));
    }
    encoded(pen, &document)
}

/// Encodes a document, at times in another encoding than UTF-8, or invalidly.
fn encoded(pen: &mut Pen<'_>, document: &str) -> Vec<u8> {
    let wide = |to: fn(u16) -> [u8; 2]| document.encode_utf16().flat_map(to).collect::<Vec<u8>>();
    match pen.number(0, 90) {
        0 => [&[0xff_u8, 0xfe][..], &wide(u16::to_le_bytes)].concat(),
        1 => [&[0xfe_u8, 0xff][..], &wide(u16::to_be_bytes)].concat(),
        2 => wide(u16::to_be_bytes),
        // Overlong encoding of a full stop in two bytes, which isn't valid UTF-8.
        3 => document.bytes().flat_map(|byte| if byte == b'.' { vec![0xc0, 0xae] } else { vec![byte] }).collect(),
        4 => document.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect(),
        5 => {
            let end = pen.number(0, document.len());
            document.as_bytes()[..end].to_vec()
        }
        _ => document.as_bytes().to_vec(),
    }
}

/// Generates an element with a text, written in one of many ways.
pub(super) fn element(pen: &mut Pen<'_>, name: &str, text: &str) -> String {
    let text = written(pen, text);
    match pen.number(0, 120) {
        0 => format!("<{name}>{text}</{name} >"),
        1 => format!("<{name} a=\"b\">{text}</{name}>"),
        2 => format!("<{name}><{name}>{text}</{name}></{name}>"),
        3 => format!("<{name}>{text}</{name}><{name}>{text}</{name}>"),
        4 => format!("<a:{name}>{text}</a:{name}>"),
        5 => format!("<{name}>{text}"),
        6 => format!("<{name}/>"),
        7 => format!("{}{text}{}", format!("<{name}>").repeat(200), format!("</{name}>").repeat(200)),
        _ => format!("<{name}>{text}</{name}>"),
    }
}

/// Returns an element that doesn't belong there, or usually an empty string.
pub(super) fn stranger(pen: &mut Pen<'_>) -> &'static str {
    if pen.chance(8) { pen.one(STRANGERS) } else { "" }
}

/// Returns white space between elements, at times.
pub(super) fn blank(pen: &mut Pen<'_>) -> &'static str {
    pen.one(&["", "", "", "\n", " \t", "\r\n  "])
}

/// Escapes a text, usually including characters that don't need it.
fn written(pen: &mut Pen<'_>, text: &str) -> String {
    match pen.number(0, 40) {
        0..=3 => return format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>")),
        4 => return format!("{}&x;", escaped(text)),
        5 => return format!("{}&nbsp;", escaped(text)),
        6 => return format!("{}&#0;", escaped(text)),
        7 => return text.to_owned(),
        8 => return format!(" {}\n", escaped(text)),
        _ => {}
    }
    let mut out = String::new();
    for c in text.chars() {
        match pen.number(0, 50) {
            0 => out.push_str(&format!("&#{};", u32::from(c))),
            1 => out.push_str(&format!("&#x{:X};", u32::from(c))),
            2 => out.push_str(&format!("&#x000{:x};", u32::from(c))),
            3 if c.is_ascii() => out.push_str(&format!("<![CDATA[{c}]]>")),
            4 if pen.chance(20) => out.push_str("<!-- -->"),
            _ => out.push_str(&escaped(&c.to_string())),
        }
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
