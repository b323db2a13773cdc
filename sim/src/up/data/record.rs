//! Records: lines of text that begin with a letter. Pure functions.
//!
//! | letter | meaning |
//! |---|---|
//! | `o` | an object: `[group, plural, version, completed, namespace, name]` and its JSON |
//! | `S` | a store, as `[name, region]` |
//! | `s` | a change of a store: its name, and a document of the store |
//! | `t` | an issued token |
//! | `c` | the offset of the clock, in seconds |
//! | `m` | a host and port by which backends know the served store |
//! | `f` | true if the initial manifests were applied |
//! | `v` | the highest version of any object of the cluster, only in a database |
//! | `e` | the end of a snapshot |
//!
//! A snapshot is a sequence of records. In a database each record has a place, which is also true
//! of the records of a store.

use kube_front::Issued;
use kube_sim::Kept;
use s3_sim::Entry;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Deserializer;

/// A record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    Object(Kept),
    Store { name: String, region: String },
    Change { store: String, document: Vec<u8> },
    Token(Issued),
    Clock(i64),
    Main(String),
    Furnished(bool),
    Version(u64),
    End,
}

/// Deletes the rows of all objects and tokens, and of the initial manifests.
pub(super) fn nothing() -> [Entry; 3] {
    [b"o", b"t", b"f"].map(|letter| Entry { place: letter.to_vec(), document: None })
}

/// Deletes the row of an object.
pub(super) fn gone(kept: &Kept) -> Entry {
    Entry { place: object_key(kept), document: None }
}

/// Returns the row of a store's document.
pub(super) fn of_store(store: &str, Entry { place, document }: Entry) -> Entry {
    let line = document.map(|document| Record::Change { store: store.to_owned(), document }.line());
    Entry { place: [b"s", &json(&store)[..], &place].concat(), document: line }
}

/// Returns the key of an object. No key is a prefix of another one: each is the text of a whole
/// array.
fn object_key(Kept { group, plural, namespace, name, .. }: &Kept) -> Vec<u8> {
    [&b"o"[..], &json(&(group, plural, namespace, name))].concat()
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts and numbers are JSON")
}

impl Record {
    /// Returns the row in a database. A change of a store has a separate one: [`of_store`].
    pub(super) fn row(&self) -> Entry {
        let key = match self {
            Self::Object(kept) => object_key(kept),
            Self::Store { name, .. } => [b"S", name.as_bytes()].concat(),
            Self::Token(issued) => [b"t", &issued.hash[..]].concat(),
            Self::Main(host) => [b"m", host.as_bytes()].concat(),
            Self::Change { .. } | Self::Clock(_) | Self::Furnished(_) | Self::Version(_) | Self::End => {
                self.line()[..1].to_vec()
            }
        };
        Entry { place: key, document: Some(self.line()) }
    }

    /// Returns the line, without a line break.
    pub(super) fn line(&self) -> Vec<u8> {
        let (letter, rest): (&[u8], Vec<u8>) = match self {
            Self::Object(Kept { group, plural, namespace, name, version, object, completed_on_read }) => {
                let head = json(&(group, plural, version, completed_on_read, namespace, name));
                (b"o", [&head[..], b" ", object.as_deref().unwrap_or_default()].concat())
            }
            Self::Store { name, region } => (b"S", json(&(name, region))),
            Self::Change { store, document } => (b"s", [&json(store)[..], b" ", document].concat()),
            Self::Token(issued) => (b"t", json(issued)),
            Self::Clock(ahead) => (b"c", json(ahead)),
            Self::Main(name) => (b"m", json(name)),
            Self::Furnished(is) => (b"f", json(is)),
            Self::Version(version) => (b"v", json(version)),
            Self::End => (b"e", Vec::new()),
        };
        [letter, b" ", &rest].concat()
    }

    /// Parses a line.
    ///
    /// # Errors
    /// Returns a message about an invalid line.
    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        let (letter, rest) = line.split_at_checked(2).ok_or("a record is too short")?;
        Ok(match letter {
            b"o " => {
                let ((group, plural, version, completed_on_read, namespace, name), object) = first(rest)?;
                let object = Some(object.to_vec().into());
                Self::Object(Kept { group, plural, namespace, name, version, object, completed_on_read })
            }
            b"S " => {
                let (name, region) = whole(rest)?;
                Self::Store { name, region }
            }
            b"s " => {
                let (store, document) = first(rest)?;
                Self::Change { store, document: document.to_vec() }
            }
            b"t " => Self::Token(whole(rest)?),
            b"c " => Self::Clock(whole(rest)?),
            b"m " => Self::Main(whole(rest)?),
            b"f " => Self::Furnished(whole(rest)?),
            b"v " => Self::Version(whole(rest)?),
            b"e " => Self::End,
            _ => return Err("a record is of an unknown sort".to_owned()),
        })
    }
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("a record can't be read: {error}")
}

fn whole<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| unreadable(&error))
}

/// Parses a value. Returns it with the text after it and a space.
fn first<T: DeserializeOwned>(text: &[u8]) -> Result<(T, &[u8]), String> {
    let mut values = Deserializer::from_slice(text).into_iter();
    let value = values.next().ok_or("a record holds nothing")?.map_err(|error| unreadable(&error))?;
    Ok((value, text.get(values.byte_offset() + 1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(object: &'static [u8]) -> Kept {
        let [group, plural, namespace, name] = ["rbac", "roles", "a b", "name \" of\nmany"].map(str::to_owned);
        let object = Some(bytes::Bytes::from_static(object));
        Kept { group, plural, namespace, name, version: 7, object, completed_on_read: false }
    }

    #[test]
    fn what_is_written_is_read() {
        let to = kube_front::IssuedTo {
            namespace: "a".to_owned(),
            name: "b".to_owned(),
            uid: "c".to_owned(),
            ends: jiff::Timestamp::UNIX_EPOCH,
        };
        let records = [
            Record::Object(kept(br#"{"a":"b c"}"#)),
            Record::Store { name: "one:9000".to_owned(), region: "eu-west-1".to_owned() },
            Record::Change { store: "one:9000".to_owned(), document: br#"{"a": 1}"#.to_vec() },
            Record::Token(Issued { hash: [7; 32], to }),
            Record::Clock(-3),
            Record::Main("one:9000".to_owned()),
            Record::Furnished(true),
            Record::Version(7),
            Record::End,
        ];
        for record in records {
            let line = record.line();
            assert!(!line.contains(&b'\n'), "{record:?}");
            assert_eq!(Record::read(&line), Ok(record));
        }
    }

    #[test]
    fn what_is_no_record_is_told_of() {
        for line in [&b""[..], b"o", b"o {}", b"q []", b"c x", b"r [1]", b"v x"] {
            assert!(Record::read(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }
}
