//! The webhook calls of one request: pending calls and the answers so far.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use futures::StreamExt as _;
use kube_sim::json::json_text;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};

use super::call::{ANSWER_LIMIT, Call, NoAnswer, Webhooks};
use super::hook::{Hook, ReviewVersion, Sort};
use super::review::{self, Said, Verdict};
use crate::options::Random;

/// Maximum duration of a write, with all of its webhooks (`requestTimeoutUpperBound`).
const WHOLE: Duration = Duration::from_secs(34);
/// Maximum number of concurrent calls of a request. A deletion of many objects needs many calls.
const AT_ONCE: usize = 16;
/// Maximum number of characters of all warnings together. If there are more, each warning is
/// truncated.
const WARNINGS: usize = 4096;
/// Maximum length of a truncated warning.
const CUT: usize = 256;

/// A webhook's verdict, or the reason why there is none.
pub(super) type Outcome = Result<Verdict, String>;

/// The key of a review: a hash of the webhook and the request.
type Key = [u8; 32];

/// The webhooks' answers for one request. Each retry of the request uses them.
pub(crate) struct Hearing {
    random: Random,
    until: Instant,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    tries: usize,
    kept: BTreeMap<&'static str, String>,
    heard: BTreeMap<Key, Result<Said, String>>,
    open: Vec<Question>,
    warnings: Vec<String>,
}

/// A pending call of a webhook.
struct Question {
    key: Key,
    sort: Sort,
    version: ReviewVersion,
    name: String,
    uid: String,
    until: Instant,
    call: Call,
}

/// The next step after an attempt of a request.
#[derive(Debug)]
pub(crate) enum Next {
    /// The answer is final and gets these warnings.
    Answered(Vec<String>),
    /// More answers are known now: attempt the request again.
    Again,
    /// The time limit is over.
    TooLate,
}

impl fmt::Debug for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearing").finish_non_exhaustive()
    }
}

impl Hearing {
    /// Creates one that begins now. UIDs of reviews are random.
    pub(crate) fn new(random: Random) -> Self {
        Self { random, until: Instant::now() + WHOLE, inner: Mutex::default() }
    }

    /// True during the first attempt of the request.
    pub(crate) fn is_first_try(&self) -> bool {
        self.inner.lock().tries == 0
    }

    /// Returns true if webhooks have to be called before the request can continue.
    pub(crate) fn is_open(&self) -> bool {
        !self.inner.lock().open.is_empty()
    }

    /// Returns the value from the first attempt, or makes it.
    pub(crate) fn kept(&self, what: &'static str, make: impl FnOnce() -> String) -> String {
        self.inner.lock().kept.entry(what).or_insert_with(make).clone()
    }

    /// Returns a webhook's outcome for a request; `None` if the webhook has to be called first.
    pub(super) fn ask(&self, hook: &Hook, request: &Value) -> Option<Outcome> {
        let key = key(hook, request);
        let mut inner = self.inner.lock();
        if let Some(said) = inner.heard.get(&key).cloned() {
            return Some(said.map(|said| {
                inner.warnings.extend(said.warnings);
                said.verdict
            }));
        }
        if !inner.open.iter().any(|question| question.key == key) {
            match self.question(key, hook, request) {
                Ok(question) => inner.open.push(question),
                Err(why) => return Some(Err(why)),
            }
        }
        None
    }

    fn question(&self, key: Key, hook: &Hook, request: &Value) -> Result<Question, String> {
        let version = hook.review_version.ok_or(
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)",
        )?;
        let now = Instant::now();
        let timeout = hook.timeout.min(self.until.saturating_duration_since(now));
        let (url, place) = hook
            .url(timeout)
            .ok_or("could not get REST client: webhook configuration must have either service or URL")?;
        let uid = uuid((self.random)());
        let review = json_text(&review::review(version, &uid, request));
        let ca_bundle = hook.client.ca_bundle.as_ref().map(|bundle| bundle.0.clone()).unwrap_or_default();
        let call = Call { url, place, ca_bundle, review, timeout };
        Ok(Question { key, sort: hook.sort, version, name: hook.name.clone(), uid, until: now + timeout, call })
    }

    /// Calls the pending webhooks.
    pub(crate) async fn go_on(&self, webhooks: &dyn Webhooks) -> Next {
        let open = {
            let mut inner = self.inner.lock();
            inner.tries += 1;
            if inner.open.is_empty() {
                return Next::Answered(bounded(std::mem::take(&mut inner.warnings)));
            }
            inner.warnings.clear();
            std::mem::take(&mut inner.open)
        };
        if Instant::now() >= self.until {
            return Next::TooLate;
        }
        let asked = futures::stream::iter(open).map(|question| question.put(webhooks)).buffer_unordered(AT_ONCE);
        let heard: Vec<_> = asked.collect().await;
        self.inner.lock().heard.extend(heard);
        Next::Again
    }
}

impl Question {
    async fn put(self, webhooks: &dyn Webhooks) -> (Key, Result<Said, String>) {
        let url = self.call.url.clone();
        let answer = timeout_at(self.until, webhooks.call(self.call)).await;
        let late = || NoAnswer::Unreached("context deadline exceeded".to_owned());
        let said = match answer.unwrap_or_else(|_| Err(late())) {
            Ok(answer) if answer.len() > ANSWER_LIMIT => {
                let why = format!("the answer is longer than {ANSWER_LIMIT} bytes");
                Err(review::no_answer(&url, NoAnswer::Unreached(why)))
            }
            Ok(answer) => review::read(self.sort, self.version, &self.name, &self.uid, &answer),
            Err(why) => Err(review::no_answer(&url, why)),
        };
        (self.key, said)
    }
}

fn key(hook: &Hook, request: &Value) -> Key {
    let mut hash = Sha256::new();
    hash.update(hook.identity.as_bytes());
    hash.update([0]);
    hash.update(json_text(request));
    hash.finalize().into()
}

/// Formats a random UUID.
fn uuid(random: [u8; 32]) -> String {
    let mut bytes = random;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex::encode(&bytes[..16]);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Removes duplicate warnings, and limits them to the space in a response's head
/// (`k8s.io/apiserver/pkg/endpoints/filters/warning.go`).
fn bounded(warnings: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all: Vec<String> = warnings.into_iter().filter(|text| !text.is_empty() && seen.insert(text.clone())).collect();
    let length = |text: &String| text.chars().count();
    if all.iter().map(length).sum::<usize>() <= WARNINGS {
        return all;
    }
    let mut written = 0;
    let cut = all.into_iter().map(|text| text.chars().take(CUT).collect::<String>());
    cut.take_while(|text| {
        let has_room = written < WARNINGS;
        written += length(text);
        has_room
    })
    .collect()
}
