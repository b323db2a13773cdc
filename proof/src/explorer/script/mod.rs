//! Scripts of tenants' requests to gateways, valid and invalid ones, each recorded with the
//! requests that the stores received for it, and the answer.

mod acts;
mod sign;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use s3s::Body;
use tower::ServiceExt;

pub use acts::{Attempt, Holder, How, Want};
pub(super) use acts::{beyond_quota, looks, of_length, public, tricks, uploads, with};

use stowage_world::World;
use stowage_world::history::facts::field;
use stowage_world::history::{Answer, Exchange, Meant, Received, What};

use self::sign::{Keys, Made};

/// Maximum time that a client waits for the end of an answer, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Time between two requests.
const PAUSE: Duration = Duration::from_millis(100);

/// A key as read by a tenant.
#[derive(Clone)]
pub(super) struct HeldKey {
    tenant: String,
    keys: Keys,
}

/// Returns the key that the claim's status refers to, if it is complete.
pub(super) fn read_key(world: &World, namespace: &str, claim: &str) -> Option<HeldKey> {
    let tenant = format!("{namespace}/{claim}");
    let claim = world.cluster.object("bucketclaims", namespace, claim)?;
    let secret = world.cluster.object("secrets", namespace, claim["status"]["boundSecretName"].as_str()?)?;
    let (id, secret) = (field(&secret, "AWS_ACCESS_KEY_ID")?, field(&secret, "AWS_SECRET_ACCESS_KEY")?);
    Some(HeldKey { tenant, keys: Keys { id, secret } })
}

/// Makes all attempts, one after the other. An attempt is skipped if its key doesn't exist, or if
/// an earlier part of its multipart upload failed.
pub(super) async fn play(world: &World, gateway: usize, kept: Option<&HeldKey>, attempts: Vec<Attempt>) {
    let mut told: BTreeMap<&'static str, String> = BTreeMap::new();
    for attempt in attempts {
        let held = match attempt.who {
            Holder::Claim(namespace, claim) => read_key(world, namespace, claim).map(Some),
            Holder::Kept => kept.cloned().map(Some),
            Holder::MadeUp => Some(Some(HeldKey { tenant: String::new(), keys: Keys::made_up() })),
            Holder::Nobody => Some(None),
        };
        let (Some(held), Some(meant)) = (held, attempt.want.meant(&told)) else { continue };
        let exchange = exchange(world, gateway, held.as_ref(), meant, &attempt).await;
        attempt.want.learn(&exchange.answer, &mut told);
        world.note(What::Exchanged(Box::new(exchange)));
        world.pass(PAUSE).await;
    }
}

async fn exchange(world: &World, gateway: usize, held: Option<&HeldKey>, meant: Meant, attempt: &Attempt) -> Exchange {
    let before = world.contents();
    // Discards what stores received for earlier requests that timed out.
    drop(world.mailbox.take());
    let made = sign::made(&meant, held.map(|held| &held.keys), attempt.how, world.clock.now());
    let answer = match world.gateways().get(gateway) {
        Some(gateway) => {
            let asked = async {
                let answer = gateway.http().oneshot(request(made)).await.ok()?;
                Some(read(answer).await)
            };
            tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
        }
        None => None,
    };
    let nothing = Answer { status: 0, headers: Vec::new(), body: Err(Bytes::new()) };
    let answer = answer.unwrap_or(nothing);
    Exchange {
        gateway,
        tenant: held.map(|held| held.tenant.clone()).unwrap_or_default(),
        access_key_id: held.map(|held| held.keys.id.clone()),
        meant,
        right: attempt.right,
        answer,
        received: asked_for(&attempt.want, world.mailbox.take()),
        before,
        after: world.contents(),
    }
}

/// Returns the requests that the stores received for a request, without the lists by which gateways
/// measure buckets meanwhile.
fn asked_for(want: &Want, mut received: Vec<Received>) -> Vec<Received> {
    if want.is_write() {
        let is_list = |it: &Received| it.method == "GET" && it.target.split('?').next().is_some_and(is_bucket);
        received.retain(|it| !is_list(it));
    }
    received
}

fn is_bucket(path: &str) -> bool {
    path.trim_matches('/').split('/').count() == 1
}

fn request(made: Made) -> Request<Body> {
    let pieces = made.body.into_iter().map(|piece| Ok::<_, std::io::Error>(Frame::data(piece)));
    let mut request = Request::new(match made.is_empty {
        true => Body::empty(),
        false => Body::http_body_unsync(StreamBody::new(stream::iter(pieces.collect::<Vec<_>>()))),
    });
    *request.method_mut() = made.method.parse().expect("a method");
    *request.uri_mut() = made.target.parse().expect("a target");
    *request.headers_mut() = made.headers;
    request
}

async fn read(answer: http::Response<Body>) -> Answer {
    let (head, body) = answer.into_parts();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect();
    let (mut pieces, mut came, mut is_whole) = (BodyExt::into_data_stream(body), Vec::new(), true);
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => came.extend_from_slice(&piece),
            Err(_) => {
                is_whole = false;
                break;
            }
        }
    }
    let came = Bytes::from(came);
    Answer { status: head.status.as_u16(), headers, body: if is_whole { Ok(came) } else { Err(came) } }
}
