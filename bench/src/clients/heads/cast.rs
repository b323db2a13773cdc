//! The senders of requests with their keys, from a claim and from an access, and the objects
//! prepared for them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::json;
use stowage_gateway::sigv4::Signer;
use stowage_gateway::uri::{Pair, encode_path};
use stowage_operator::api::SecretKey;
use stowage_testbed::request::{Asker, Signed};
use stowage_testbed::store::Key;
use tokio::time::{Instant, sleep};

use super::canary::Canary;
use super::generate::{Body, Kind, OBJECTS, Request, SHARED, Scene, Who};
use super::rules::{Grant, Rights};
use super::wire::{Answer, Caller};
use crate::clients::environment::{Access, Installation, PATIENCE};

/// The claims: one of the owner, one with the bucket that the guest reads, and one that no sender
/// has access to.
const CLAIMS: [&str; 3] = ["heads", "films", "neighbour"];
/// Interval between checks that the gateway knows a key.
const LOOK: Duration = Duration::from_millis(50);

/// All senders, with their objects.
pub(super) struct Cast {
    owner: (Caller, Rights),
    guest: (Caller, Rights),
    pub(super) scene: Scene,
    pub(super) canary: Canary,
}

impl Cast {
    /// Creates the claims and the access, and puts objects into their buckets. `store` has the
    /// store's own key, and `directory` is the store's directory.
    ///
    /// # Errors
    /// Fails if one of these can't be created.
    pub(super) async fn assemble(installation: &mut Installation<'_>, store: Asker, directory: &Path) -> Result<Self> {
        let mut claims = Vec::new();
        for name in CLAIMS {
            claims.push(installation.claim(name, json!({"versioning": "Enabled"})).await?);
        }
        let [owner, films, neighbour] = &claims[..] else { return Err(anyhow!("a claim is missing")) };
        let bucket = field(owner, "BUCKET_NAME")?;
        let others = [field(films, "BUCKET_NAME")?, field(neighbour, "BUCKET_NAME")?];
        let entries = [(CLAIMS[0], "ReadWrite", Some(SHARED)), (CLAIMS[1], "ReadOnly", None)];
        let guest = installation.share("guest", &entries).await?;
        let canary = Canary::put(store, directory.to_owned(), &bucket, others.clone()).await?;
        let [films, neighbour] = others;
        let (owner, guest) = (caller(owner, &bucket)?, caller(&guest, &bucket)?);
        let (versions, uploads) = fill(&owner).await?;
        known(&guest, &films).await?;
        let grant = |is_read_only, prefix| Grant { is_read_only, prefix };
        let of_owner = BTreeMap::from([(bucket.clone(), grant(false, ""))]);
        let of_guest = [(bucket.clone(), grant(false, SHARED)), (films.clone(), grant(true, ""))];
        Ok(Self {
            owner: (owner, Rights { buckets: of_owner, pins: false }),
            guest: (guest, Rights { buckets: of_guest.into(), pins: true }),
            scene: Scene { bucket, films, neighbour, past: canary.past.clone(), versions, uploads },
            canary,
        })
    }

    /// Returns the sender, and the buckets that its key opens.
    pub(super) fn of(&self, who: Who) -> &(Caller, Rights) {
        match who {
            Who::Owner => &self.owner,
            Who::Guest => &self.guest,
        }
    }
}

fn field(access: &Access, name: &str) -> Result<String> {
    access.fields.get(name).cloned().with_context(|| format!("the Secret has no {name}"))
}

fn caller(access: &Access, bucket: &str) -> Result<Caller> {
    let endpoint: http::Uri = field(access, "AWS_ENDPOINT_URL")?.parse().context("the endpoint is no URL")?;
    let host = endpoint.authority().context("the endpoint has no host")?.to_string();
    let address: SocketAddr = host.parse().context("the gateway is on no address")?;
    let key = Key { id: field(access, "AWS_ACCESS_KEY_ID")?, secret: field(access, "AWS_SECRET_ACCESS_KEY")? };
    let region = field(access, "AWS_REGION")?;
    let signer = Signer::new(key.id.clone(), &SecretKey::new(key.secret.clone()), region.clone());
    Ok(Caller { key, region, signer, bucket: bucket.to_owned(), host, address })
}

/// Returns a request in its usual encoding.
fn plain(method: &'static str, bucket: &str, key: &str, query: Option<&str>) -> Request {
    let path = format!("/{bucket}/{key}").into_bytes();
    let target = encode_path(&path);
    Request {
        number: 0,
        kind: Kind::Heads,
        who: Who::Owner,
        signed: Signed::Headers,
        method,
        path,
        target: query.map_or_else(|| target.clone(), |name| format!("{target}?{name}")),
        query: query.map(|name| Pair { name: name.into(), value: Vec::new() }).into_iter().collect(),
        headers: HeaderMap::new(),
        body: Body::Bytes(if method == "PUT" { b"data".to_vec() } else { Vec::new() }),
    }
}

async fn send(caller: &Caller, request: Request) -> Result<Answer> {
    caller.send(&caller.write(&request, Timestamp::now())?).await
}

async fn done(caller: &Caller, request: Request) -> Result<Answer> {
    let what = request.to_string();
    let answer = send(caller, request).await?;
    if answer.status == 200 { Ok(answer) } else { Err(anyhow!("{what} was answered {}", answer.status)) }
}

/// Puts the objects, and begins uploads. Returns the ids of versions and of uploads.
async fn fill(owner: &Caller) -> Result<(Vec<String>, Vec<String>)> {
    let (mut versions, mut uploads) = (Vec::new(), Vec::new());
    for key in OBJECTS.iter().flat_map(|key| [(*key).to_owned(), format!("{SHARED}{key}")]) {
        for _ in 0..2 {
            let answer = done(owner, plain("PUT", &owner.bucket, &key, None)).await?;
            versions.push(answer.header("x-amz-version-id").context("the bucket keeps no versions")?);
        }
    }
    for key in ["k0", "shared/k0"] {
        let answer = done(owner, plain("POST", &owner.bucket, key, Some("uploads"))).await?;
        uploads.push(answer.element("UploadId").context("an upload without an id")?);
    }
    Ok((versions, uploads))
}

/// Waits until the gateway knows a key that can read an object there.
async fn known(guest: &Caller, films: &str) -> Result<()> {
    let start = Instant::now();
    loop {
        let answer = send(guest, plain("GET", films, "reel", None)).await?;
        if answer.status == 200 {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err(anyhow!("the guest's key was answered {} for {} s", answer.status, PATIENCE.as_secs()));
        }
        sleep(LOOK).await;
    }
}
