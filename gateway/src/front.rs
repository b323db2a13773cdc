//! The way of a request: read, verified, decided about, passed on, answered.

mod answers;
mod deletions;
mod documents;
mod peer;
mod quota;
mod recheck;
mod record;
mod segments;
mod source;
mod store;
mod upload;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::request::Parts;
use http::{Method, Request, Response};
use jiff::Timestamp;
use tokio::time::Instant;

use self::deletions::Deletions;
use self::documents::Documents;
pub use self::peer::{Peer, Proxies};
use self::record::Record;
use self::segments::Stores;
use self::store::Passed;
pub(crate) use self::store::Reading;
use self::upload::Forms;
use crate::answer::{Unhappy, nothing};
use crate::audit::Log;
use crate::body::Body;
use crate::cors;
use crate::decide::{Caller, Verdict, Wanted, decide, denied};
use crate::head::{Ask, Domains, Sent};
use crate::limits::{Counts, Rates, Source};
use crate::metrics::Metrics;
use crate::quota::Quotas;
use crate::refusal::{Code, Refusal};
use crate::registry::{Holder, Key, Live, Registry, Tables};
use crate::server::Gauges;
use crate::sigv4::{self, Claim, How, Raw, Verified};
use crate::upstream::{Clients, Connect};

/// Where the gateway reads the time from.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a gateway is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The region that requests are signed for.
    pub region: String,
    /// Whose word about a client's address is believed.
    pub proxies: Proxies,
    /// Domains below which a host names a bucket.
    pub domains: Domains,
    /// Most calls to each store at once.
    pub backend_calls: usize,
    /// Most requests at once by the keys of one claim, and by everybody without a key of one
    /// bucket.
    pub per_claim: u32,
    /// Requests a second of one source to a public bucket, where its claim doesn't say.
    pub anonymous_rps: u32,
    /// How old what is known may be before nothing is served by it any more.
    pub max_staleness: Duration,
}

impl Default for Config {
    /// As the command line has it by default.
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            proxies: Proxies::default(),
            domains: Domains::default(),
            backend_calls: 512,
            per_claim: 128,
            anonymous_rps: 50,
            max_staleness: Duration::from_secs(60 * 60),
        }
    }
}

/// What a gateway is made of.
pub struct Gears {
    /// What it knows of the cluster.
    pub registry: Registry,
    /// How it asks for a key that it doesn't know yet.
    pub live: Live,
    /// How it reaches stores.
    pub connect: Box<dyn Connect>,
    /// The time, by which keys end.
    pub clock: WallClock,
    /// The time that clients date their signatures by: the same, but where a simulator moves its
    /// own ahead, and they have the machine's.
    pub clock_of_clients: WallClock,
    /// Where ids of requests begin: a random number.
    pub first_id: u64,
    /// Where access is logged, if anywhere.
    pub log: Option<Log>,
    /// What is measured.
    pub metrics: Metrics,
}

/// The gateway. Clones are handles to the same one.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

struct Shared {
    config: Config,
    registry: Registry,
    live: Live,
    clients: Clients,
    clock: WallClock,
    clock_of_clients: WallClock,
    next_id: AtomicU64,
    log: Option<Log>,
    metrics: Metrics,
    shares: Counts<Share>,
    sources: Counts<(String, Source)>,
    rates: Rates<(String, Source)>,
    documents: Documents,
    deletions: Arc<Deletions>,
    forms: Forms,
    stores: Stores,
    quotas: Quotas,
    begun: Instant,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("config", &self.0.config).finish_non_exhaustive()
    }
}

/// Who shares a bound on what is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Share {
    /// Who has a key of the claim or access with this UID.
    Holder(String),
    /// Who has no key, of this bucket.
    Public(String),
}

/// Most requests at once of one source to one public bucket.
const PER_SOURCE: u32 = 16;

/// Longest head: the first line and all headers, in bytes.
const LONGEST_HEAD: usize = 32 << 10;

impl Gateway {
    /// A gateway of these parts. It serves once its registry has read its first whole view.
    #[must_use]
    pub fn new(gears: Gears, config: Config) -> Self {
        Self(Arc::new(Shared {
            registry: gears.registry,
            live: gears.live,
            clients: Clients::new(gears.connect, config.backend_calls),
            clock: gears.clock,
            clock_of_clients: gears.clock_of_clients,
            next_id: AtomicU64::new(gears.first_id),
            log: gears.log,
            metrics: gears.metrics,
            shares: Counts::new(config.per_claim),
            sources: Counts::new(PER_SOURCE),
            rates: Rates::default(),
            documents: Documents::default(),
            deletions: Arc::default(),
            forms: Forms::default(),
            stores: Stores::default(),
            quotas: Quotas::new(format!("{:016x}", mixed(!gears.first_id))),
            begun: Instant::now(),
            config,
        }))
    }

    /// Answers a request. There is always an answer; a body that breaks off ends the connection.
    pub async fn serve(&self, request: Request<Body>, peer: Peer) -> Response<Body> {
        let shared = &self.0;
        let (parts, body) = request.into_parts();
        let client = shared.config.proxies.client(peer.address.ip(), &parts.headers);
        let peer = Peer { address: (client, peer.address.port()).into(), ..peer };
        let id = format!("{:016X}", mixed(shared.next_id.fetch_add(1, Ordering::Relaxed)));
        let mut record = Record::of(&parts, &peer, id, (shared.clock)());
        let is_head = parts.method == Method::HEAD;
        let resource = parts.uri.path().to_owned();
        let asked = cors::Asked::of(&parts);
        let answered = shared.answer(parts, body, &peer, &mut record).await;
        let mut answer = answered.unwrap_or_else(|unhappy| {
            record.fail(&unhappy);
            unhappy.into_answer(&resource, record.id(), is_head)
        });
        shared.mark(&asked, record.backend(), &mut answer);
        record.close(answer, shared.log.clone(), shared.metrics.clone())
    }

    /// A line about whether requests can be served now.
    ///
    /// # Errors
    /// A line about why they can't.
    pub fn fitness(&self, now: Instant) -> Result<String, String> {
        let age = self.0.fit(now)?;
        if !self.0.quotas.is_ready(now, now.saturating_duration_since(self.0.begun)) {
            return Err("what the other replicas store is not known yet".to_owned());
        }
        Ok(format!("ok: the API server was heard of {} s ago", age.as_secs()))
    }

    /// All that is measured, as text.
    #[must_use]
    pub fn measure(&self, now: Instant, dropped: u64, gauges: &Gauges) -> String {
        let age = self.0.registry.age(now).map_or(0, |age| age.as_secs());
        let keys = self.0.registry.ask(Tables::counts).keys as u64;
        let (open, refused) = (gauges.open.load(Ordering::Relaxed), gauges.refused.load(Ordering::Relaxed));
        self.0.metrics.read_off(dropped, open, refused, age, keys);
        self.0.metrics.quotas(&self.0.quotas.gauge(now));
        self.0.metrics.resting(&self.0.clients.resting());
        self.0.metrics.text().unwrap_or_default()
    }

    /// What is known of the cluster.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }
}

/// Numbers in a row as ids that tell nobody how many there were (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Who a request is from.
enum Known {
    /// Who holds this key.
    Key(Arc<Key>, Box<Verified>),
    /// Who signed the policy of a form with this key.
    Form(Arc<Key>),
    /// Nobody known.
    Nobody,
}

impl Known {
    fn caller(&self) -> Caller<'_> {
        match self {
            Self::Key(key, _) | Self::Form(key) => Caller::Key(key),
            Self::Nobody => Caller::Nobody,
        }
    }

    /// The key is one of an access, which may be for present objects alone.
    fn is_access(&self) -> bool {
        match self {
            Self::Key(key, _) | Self::Form(key) => matches!(key.holder, Holder::Access(_)),
            Self::Nobody => false,
        }
    }
}

impl Shared {
    /// How old what is known is.
    fn fit(&self, now: Instant) -> Result<Duration, String> {
        match self.registry.age(now).filter(|_| self.registry.is_ready()) {
            None => Err("the first view of the cluster is not whole yet".to_owned()),
            Some(age) if age > self.config.max_staleness => {
                Err(format!("the API server was not heard of for {} s", age.as_secs()))
            }
            Some(age) => Ok(age),
        }
    }

    async fn answer(
        self: &Arc<Self>,
        parts: Parts,
        body: Body,
        peer: &Peer,
        record: &mut Record,
    ) -> Result<Response<Body>, Unhappy> {
        check_size(&parts)?;
        self.fit(Instant::now()).map_err(|_| {
            Refusal::new(Code::ServiceUnavailable, "The gateway doesn't know its credentials now. Please try again.")
        })?;
        if parts.method == Method::OPTIONS {
            record.asks_for_leave();
            return self.preflight(&parts);
        }
        let now = (self.clock)();
        let location = answers::location_of(&parts, peer);
        let sent = Sent::read(parts, &self.config.domains)?;
        if let Some(boundary) = upload::boundary(&sent)? {
            return self.upload(sent, (boundary, body), peer, (now, location), record).await;
        }
        let (known, how, word) = self.know(&sent, now).await?;
        if let Known::Key(key, _) = &known {
            record.signed_by(key, if matches!(how, Some(How::Header)) { "AuthHeader" } else { "QueryString" });
        }
        let ask = sent.ask(matches!(how, Some(How::Query { .. })), &word)?;
        record.asks(&ask);
        let verdict = self.registry.ask(|tables| decide(known.caller(), &Wanted::of(&ask), tables, now))?;
        match verdict {
            Verdict::TellBuckets(buckets) => Ok(answers::buckets(&buckets, &ask)),
            Verdict::TellConfiguration => Ok(answers::configuration(ask.operation)?),
            Verdict::TellRegion => Ok(answers::region(&self.config.region)),
            Verdict::Forward(backend) => {
                record.forwarded(&backend.name);
                let held = self.admit(&known, &ask, peer)?;
                let passed = Passed { ask, backend, body, now, location };
                let passed = self.with_document(passed, &known).await?;
                let answer = self.carry_out(passed, known, record).await?;
                Ok(record::holding(answer, held))
            }
            Verdict::ReadDeletion => {
                let held = self.admit(&known, &ask, peer)?;
                let (passed, aside, _room) = self.read_deletion(ask, body, &known, location, record).await?;
                record.forwarded(&passed.backend.name);
                let answer = self.carry_out_deletion(passed, aside, known, record).await?;
                Ok(record::holding(answer, held))
            }
        }
    }

    /// Whether a page of another origin may do something, asked without a signature.
    fn preflight(&self, parts: &Parts) -> Result<Response<Body>, Unhappy> {
        let rules = |tables: &Tables| cors::preflight(tables.rules(), &parts.headers);
        let mut answer = Response::new(nothing());
        *answer.headers_mut() = self.registry.ask(rules)?;
        Ok(answer)
    }

    /// Marks an answer for the page that asks: by the rule of the backend that it was passed on to,
    /// by any where it was not.
    fn mark(&self, asked: &cors::Asked, backend: Option<&str>, answer: &mut Response<Body>) {
        let headers = answer.headers_mut();
        self.registry.ask(|tables| match backend {
            Some(name) => cors::mark(tables.backend(name).and_then(|backend| backend.cors.as_ref()), asked, headers),
            None => cors::mark(tables.rules(), asked, headers),
        });
    }

    /// Who signed a request, and how, and what is said of its body.
    async fn know(&self, sent: &Sent, now: Timestamp) -> Result<(Known, Option<How>, String), Refusal> {
        let raw = Raw { method: sent.method.as_str(), path: &sent.path, query: &sent.query, headers: &sent.headers };
        let Some(claim) = sigv4::claim(&raw)? else {
            return Ok((Known::Nobody, None, "UNSIGNED-PAYLOAD".to_owned()));
        };
        let word = self.word(sent, &claim)?;
        let (region, dated) = (&self.config.region, (self.clock_of_clients)());
        let Some(key) = self.key(&claim.access_key_id, now).await else {
            return Err(sigv4::refuse_unknown(&raw, &claim, word, region, dated));
        };
        let verify = |word| sigv4::verify(&raw, &claim, word, &key.signing, region, dated);
        let verified = match (verify(word), claim.how) {
            // Some pin a hash in a presigned URL and sign the word.
            (Err(refusal), How::Query { .. }) if refusal.code == Code::SignatureDoesNotMatch => {
                verify("UNSIGNED-PAYLOAD").map_err(|_| refusal)?
            }
            (verified, _) => verified?,
        };
        Ok((Known::Key(key, Box::new(verified)), Some(claim.how), word.to_owned()))
    }

    /// The key of this id; asked for where no watch has told of it. One whose time has come is as
    /// good as none.
    async fn key(&self, id: &str, now: Timestamp) -> Option<Arc<Key>> {
        let key = match self.registry.key(id) {
            Some(key) => Some(key),
            None => self.live.key(id).await,
        };
        key.filter(|key| !key.is_expired(now))
    }

    fn word<'a>(&self, sent: &'a Sent, claim: &Claim) -> Result<&'a str, Refusal> {
        let by_query = matches!(claim.how, How::Query { .. });
        match sent.payload_word(by_query)? {
            Some(word) => Ok(word),
            None if by_query => Ok("UNSIGNED-PAYLOAD"),
            None => {
                let message = "Missing required header for this request: x-amz-content-sha256";
                Err(Refusal::new(Code::MissingSecurityHeader, message))
            }
        }
    }

    /// Leave to go on for a key: all of a claim or access together, as while one follows the other.
    fn admit_holder(&self, key: &Key) -> Result<record::Held, Refusal> {
        let holder = Share::Holder(key.holder_uid().to_owned());
        let counted = self.shares.take(holder).ok_or_else(slow_down)?;
        Ok(record::Held::new(counted))
    }

    /// Leave to go on, for one of many.
    fn admit(&self, known: &Known, ask: &Ask, peer: &Peer) -> Result<record::Held, Refusal> {
        match known {
            Known::Key(key, _) | Known::Form(key) => self.admit_holder(key),
            Known::Nobody => {
                let bucket = ask.target.bucket().ok_or_else(denied)?;
                let asked = self.registry.binding(bucket.as_str()).map(|binding| binding.per_source_ip_rps);
                let rps = asked.filter(|rps| *rps > 0).unwrap_or(self.config.anonymous_rps);
                let key = (bucket.to_string(), Source::of(peer.address.ip()));
                self.rates.pass(key.clone(), rps, Instant::now()).map_err(|_| slow_down())?;
                let of_source = self.sources.take(key).ok_or_else(slow_down)?;
                let of_all = self.shares.take(Share::Public(bucket.to_string())).ok_or_else(slow_down)?;
                Ok(record::Held::new((of_source, of_all)))
            }
        }
    }
}

fn slow_down() -> Refusal {
    Refusal::new(Code::SlowDown, "Please reduce your request rate.")
}

fn check_size(parts: &Parts) -> Result<(), Refusal> {
    let line = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let headers: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if line + headers > LONGEST_HEAD {
        let message = "Your request header section exceeds the maximum allowed size of 32768 bytes.";
        return Err(Refusal::new(Code::RequestHeaderSectionTooLarge, message));
    }
    Ok(())
}
