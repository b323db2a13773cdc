//! The requests of each caller, divided into those that are allowed and those that are denied.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use stowage_operator::api::AccessMode;
use stowage_testbed::request::{Answer, Ask, Asker, Signed};
use stowage_testbed::sigv4::{checksum, encoded};

use super::buckets::Ids;
use super::doors::{DOORS, Door, KEYS, Need, PREFIXES, With};

/// Extent to which a key opens a bucket: the requested access as far as the owner consents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) mode: AccessMode,
    /// Prefix of keys; every key if empty.
    pub(super) prefix: &'static str,
}

impl Grant {
    fn allows(&self, need: Need, reach: &Reach) -> bool {
        let is_inside = match reach {
            Reach::Key(key) => key.starts_with(self.prefix),
            Reach::Bucket => self.prefix.is_empty() || need == Need::Knows,
        };
        need.is_met_by(self.mode) && is_inside
    }
}

/// Scope of a request.
enum Reach {
    /// This key, or all keys with this prefix.
    Key(String),
    Bucket,
}

/// A client with the key of an access.
pub(super) struct Caller {
    pub(super) name: &'static str,
    pub(super) asker: Asker,
    /// Extent of access, by bucket name; no access to others.
    pub(super) grants: BTreeMap<String, Grant>,
}

/// A request of the table with all its placeholders chosen.
#[derive(Clone)]
pub(super) struct Try {
    pub(super) door: &'static Door,
    pub(super) bucket: String,
    pub(super) other: String,
    /// The key or prefix that is tried.
    pub(super) key: String,
    /// A key that the caller has access to, if there is one.
    pub(super) inside: String,
    pub(super) signed: Signed,
}

impl Try {
    /// Describes the request in the notation of the table.
    pub(super) fn words(&self) -> String {
        let Door(_, method, target, with) = self.door;
        format!("{method} {target} {with:?} of {:?} in {}, signed {:?}", self.key, self.bucket, self.signed)
    }

    /// Returns the scopes that the request touches, each with the required right.
    fn touches(&self) -> Vec<(Need, &str, Reach)> {
        let Door(need, _, target, with) = self.door;
        let reach = |text: &str| {
            if text.contains('#') {
                Reach::Key(self.key.clone())
            } else if text.contains("/$") {
                Reach::Key(self.inside.clone())
            } else {
                Reach::Bucket
            }
        };
        let of_form = |key: &str, file: &str| {
            let (key, file) = (key.replace('#', &self.key), file.replace('#', &self.key));
            // A file name is the last segment of its path.
            key.replace("${filename}", file.rsplit('/').next().unwrap_or_default())
        };
        match with {
            With::Form(key, file) => vec![(*need, self.bucket.as_str(), Reach::Key(of_form(key, file)))],
            With::Keys(..) => vec![(*need, self.bucket.as_str(), Reach::Key(self.key.clone()))],
            With::Source(of_source, source) => {
                let from = if source.starts_with("/^/") { self.other.as_str() } else { self.bucket.as_str() };
                vec![(*need, self.bucket.as_str(), reach(target)), (*of_source, from, reach(source))]
            }
            With::Nothing | With::Data | With::Header(..) | With::Parts | With::Tags | With::Document => {
                vec![(*need, self.bucket.as_str(), reach(target))]
            }
        }
    }

    fn is_theirs(&self, caller: &Caller) -> bool {
        let allows = |(need, bucket, reach): &(Need, &str, Reach)| {
            caller.grants.get(*bucket).is_some_and(|grant| grant.allows(*need, reach))
        };
        self.touches().iter().all(allows)
    }

    /// Builds the request. `ids` has the identifiers of all existing keys.
    fn request(&self, asker: &Asker, ids: &BTreeMap<(String, String), Ids>) -> Ask {
        let Door(_, method, target, with) = self.door;
        if let With::Form(key, file) = with {
            let named = |text: &str| text.replace('#', &self.key);
            return asker.signer().form(&self.bucket, &named(key), &named(file), "data");
        }
        let mut ask = Ask::new(method, self.filled(target, ids));
        match with {
            With::Nothing | With::Form(..) => {}
            With::Data => ask.body = b"data".to_vec(),
            With::Header(name, value) => ask.headers.push((*name, (*value).to_owned())),
            With::Source(_, source) => ask.headers.push(("x-amz-copy-source", self.filled(source, ids))),
            With::Parts => {
                let part = ids.get(&(self.bucket.clone(), self.key.clone())).map(|ids| ids.part.clone());
                let part = format!("<Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>", part.unwrap_or_default());
                ask.body = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>").into_bytes();
            }
            With::Tags => {
                ask.body = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>".to_vec();
            }
            With::Keys(first, second) => {
                let named = |text: &str| text.replace('#', &self.key).replace('$', &self.inside);
                let object = |text: &str| format!("<Object><Key>{}</Key></Object>", named(text));
                ask.body = format!("<Delete>{}{}</Delete>", object(first), object(second)).into_bytes();
            }
            With::Document => ask.body = b"{}".to_vec(),
        }
        if matches!(with, With::Keys(..) | With::Tags) {
            ask.headers.push(("x-amz-checksum-sha256", checksum(&ask.body)));
        }
        ask
    }

    /// Returns a text of the table with its placeholders filled in.
    fn filled(&self, text: &str, ids: &BTreeMap<(String, String), Ids>) -> String {
        let bucket = if text.contains('^') { &self.other } else { &self.bucket };
        let key = if text.contains('$') { &self.inside } else { &self.key };
        let ids = ids.get(&(bucket.clone(), key.clone())).cloned().unwrap_or_default();
        let one = |c: char| match c {
            '@' => self.bucket.clone(),
            '^' => self.other.clone(),
            '#' => encoded(self.key.as_bytes(), "/"),
            '$' => encoded(self.inside.as_bytes(), "/"),
            '*' => ids.version.clone(),
            '~' => ids.upload.clone(),
            c => c.to_string(),
        };
        text.chars().map(one).collect()
    }
}

/// All requests of a caller.
#[derive(Default)]
pub(super) struct Tries {
    /// Requests that are allowed.
    pub(super) allowed: Vec<Try>,
    /// Requests that are denied.
    pub(super) refused: Vec<Try>,
}

impl Tries {
    /// Combines every request with every place in both buckets. Allowed requests are tried at one
    /// place only.
    pub(super) fn of(caller: &Caller, buckets: [&str; 2]) -> Self {
        let mut tries = Self::default();
        let [photos, films] = buckets;
        for (bucket, other) in [(photos, films), (films, photos)] {
            let prefix = caller.grants.get(bucket).map(|grant| grant.prefix).filter(|prefix| !prefix.is_empty());
            let prefix = prefix.unwrap_or("shared/");
            let inside = format!("{prefix}a");
            for door in &DOORS {
                let (places, own) = places(door, &inside, prefix);
                for key in places {
                    for signed in ways(door) {
                        let it = Try {
                            door,
                            bucket: bucket.to_owned(),
                            other: other.to_owned(),
                            key: (*key).to_owned(),
                            inside: inside.clone(),
                            signed: *signed,
                        };
                        if !it.is_theirs(caller) {
                            tries.refused.push(it);
                        } else if *key == own {
                            tries.allowed.push(it);
                        }
                    }
                }
            }
        }
        tries
    }
}

/// Returns the keys or prefixes at which a request is tried, and the one to try if it is allowed.
fn places<'a>(door: &Door, inside: &'a str, prefix: &'a str) -> (&'static [&'static str], &'a str) {
    let Door(_, _, target, with) = door;
    let names = |text: &str| text.contains('#');
    let is_about_key = match with {
        With::Form(key, file) => names(key) || names(file),
        With::Keys(first, second) => names(first) || names(second),
        With::Source(_, source) => names(target) || names(source),
        With::Nothing | With::Data | With::Header(..) | With::Parts | With::Tags | With::Document => names(target),
    };
    if target.contains("prefix=") {
        (&PREFIXES, prefix)
    } else if is_about_key {
        (&KEYS, inside)
    } else {
        (&KEYS[..1], KEYS[0])
    }
}

/// Returns the possible places of a request's signature.
fn ways(door: &Door) -> &'static [Signed] {
    match door.3 {
        With::Form(..) => &[Signed::Form],
        _ => &[Signed::Headers, Signed::Query],
    }
}

impl Caller {
    /// Sends a request that the caller has no right to.
    ///
    /// # Errors
    /// Fails if it is not denied.
    pub(super) async fn is_refused(&self, it: &Try, ids: &BTreeMap<(String, String), Ids>) -> Result<()> {
        let answer = self.asker.ask(it.request(&self.asker, ids), it.signed).await?;
        // A response to HEAD has no body, and so no error code.
        let is_denied = answer.code() == Some("AccessDenied") || it.door.1 == "HEAD";
        let told = format!("{} tried {}: {}", self.name, it.words(), outcome(&answer));
        // CreateBucket on the caller's own bucket gets this answer, so that clients which first
        // ensure that their bucket exists continue.
        let is_there = answer.status == 409 && answer.code() == Some("BucketAlreadyOwnedByYou");
        ensure!(answer.status == 403 && is_denied || is_there, "{told}");
        Ok(())
    }

    /// Sends a request that the caller has a right to.
    ///
    /// # Errors
    /// Fails if it is not carried out.
    pub(super) async fn is_let_in(&self, it: &Try, ids: &BTreeMap<(String, String), Ids>) -> Result<Answer> {
        let answer = self.asker.ask(it.request(&self.asker, ids), it.signed).await?;
        // The simulated store doesn't implement GetObjectAttributes, and says so itself.
        let is_past_gateway = matches!(it.door.3, With::Header(..)) && answer.code() == Some("NotImplemented");
        ensure!(
            answer.is_done() || is_past_gateway,
            "{} may, and could not, {}: {}",
            self.name,
            it.words(),
            outcome(&answer)
        );
        Ok(answer)
    }

    /// Returns the buckets that ListBuckets names.
    pub(super) async fn buckets(&self) -> Result<Vec<String>> {
        let answer = self.asker.ask(Ask::new("GET", "/".to_owned()), Signed::Headers).await?;
        ensure!(answer.is_done(), "{} lists its buckets: {}", self.name, outcome(&answer));
        Ok(answer.elements("Name").into_iter().map(str::to_owned).collect())
    }

    /// True if the gateway knows the key.
    pub(super) async fn is_known(&self) -> Result<bool> {
        let answer = self.asker.ask(Ask::new("GET", "/".to_owned()), Signed::Headers).await;
        answer.map(|answer| answer.code() != Some("InvalidAccessKeyId")).context(self.name)
    }
}

/// Describes a response: status, error code and message.
pub(super) fn outcome(answer: &Answer) -> String {
    format!("{} {} {}", answer.status, answer.code().unwrap_or("-"), answer.element("Message").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use stowage_operator::api::AccessMode;

    use super::*;
    use stowage_testbed::store::Key;

    fn caller(grants: &[(&str, AccessMode, &'static str)]) -> Caller {
        let key = Key { id: "A".to_owned(), secret: "b".to_owned() };
        let grant = |(bucket, mode, prefix): &(&str, AccessMode, &'static str)| {
            ((*bucket).to_owned(), Grant { mode: *mode, prefix })
        };
        let asker = Asker::new("http://127.0.0.1:1", "here", key).unwrap();
        Caller { name: "somebody", asker, grants: grants.iter().map(grant).collect() }
    }

    fn allowed(grants: &[(&str, AccessMode, &'static str)]) -> Vec<String> {
        Tries::of(&caller(grants), ["photos", "films"]).allowed.iter().map(Try::words).collect()
    }

    #[test]
    fn who_may_do_nothing_is_refused_everything() {
        let tries = Tries::of(&caller(&[]), ["photos", "films"]);
        assert_eq!(tries.allowed.len(), 0);
        for bucket in ["photos", "films"] {
            let tried = tries.refused.iter().filter(|it| it.bucket == bucket).map(|it| format!("{:?}", it.door));
            assert_eq!(tried.collect::<BTreeSet<_>>().len(), DOORS.len());
        }
    }

    #[test]
    fn modes_and_prefixes_decide_what_is_whose() {
        let reader = allowed(&[("photos", AccessMode::ReadOnly, "shared/")]);
        let writer = allowed(&[("photos", AccessMode::WriteOnly, "shared/")]);
        let editor = allowed(&[("photos", AccessMode::ReadWrite, "shared/")]);
        let all = [&reader, &writer, &editor];
        assert!(all.iter().all(|tries| tries.iter().all(|it| it.contains("in photos"))));
        let has = |tries: &[String], what: &str| tries.iter().any(|it| it.starts_with(what));
        let (get, put, delete) = ("GET /@/# Nothing", "PUT /@/# Data", "DELETE /@/# Nothing");
        assert_eq!([get, put, delete].map(|what| has(&reader, what)), [true, false, false]);
        assert_eq!([get, put, delete].map(|what| has(&writer, what)), [false, true, false]);
        assert_eq!([get, put, delete].map(|what| has(&editor, what)), [true, true, true]);
        // A copy within a bucket requires both rights on it; one from the other bucket requires a
        // right there too.
        let copies = "PUT /@/$-copy Source(Reads, \"/^/#\")";
        assert!(!has(&editor, copies));
        let both = allowed(&[("photos", AccessMode::ReadOnly, ""), ("films", AccessMode::WriteOnly, "")]);
        assert!(has(&both, copies));
    }
}
