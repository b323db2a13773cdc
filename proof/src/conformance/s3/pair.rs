//! The simulated and the real store as one `Pair`.

use std::sync::Arc;

use http::{HeaderName, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use s3_sim::Store;
use s3s::Body;
use serde_json::Value;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::super::difference::AnswerPair;
use super::super::rule::System;
use super::super::run::Pair;
use super::bodies;
use super::call::{Call, Operation};
use super::canonical::header_text;
use super::generate;
use super::server::Server;
use super::side::{Side, Transport};
use super::sign::Keys;

/// Authority of the simulated store in requests.
const SIMULATED: &str = "s3.simulation";
/// Maximum number of rounds to empty a bucket, with one page each.
const SWEEPS: usize = 20;

/// A simulated store, and a real store behind a URL.
pub struct S3Pair {
    server: Server,
    keys: Keys,
    real: Transport,
    authority: String,
    sides: Option<[Side; 2]>,
    left: Vec<String>,
}

impl std::fmt::Debug for S3Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Pair")
            .field("authority", &self.authority)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl S3Pair {
    /// Connects to the store at this URL and detects its product.
    ///
    /// # Errors
    /// Returns an error if the URL is not http and a host, if the store does not answer, or if it
    /// refuses the keys.
    pub async fn connect(url: &Uri, keys: Keys) -> Result<Self, String> {
        let bare = url.path() == "/" && url.query().is_none();
        let authority = url.authority().filter(|_| bare && url.scheme_str() == Some("http"));
        let authority = authority.ok_or_else(|| format!("{url} is not http:// and a host, nothing behind it"))?;
        let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build_http();
        let http = client.map_response(|answer: http::Response<_>| answer.map(Body::from)).map_err(BoxError::from);
        let real = BoxCloneSyncService::new(http);
        let mut side = Side::new(real.clone(), authority.as_str(), &keys, "");
        let answer = side.send(&Call::to_store("GET")).await?;
        if answer.code != 200 {
            return Err(format!("{url} answers ListBuckets with {}", answer.code));
        }
        let server = Server::from_header(&header_text(&answer.headers, &HeaderName::from_static("server")));
        Ok(Self { server, keys, real, authority: authority.as_str().to_owned(), sides: None, left: Vec::new() })
    }

    /// Returns the product of the real store.
    pub fn server(&self) -> Server {
        self.server
    }

    /// Returns the buckets that cannot be deleted. Some stores list versions that they then report
    /// as missing.
    pub fn left(&self) -> &[String] {
        &self.left
    }

    fn simulated(&self) -> Transport {
        let store = Store::new(Arc::new(jiff::Timestamp::now), self.server.dialect(&self.keys.region));
        store.add_account("conformance", &self.keys.access_key, &self.keys.secret_key);
        BoxCloneSyncService::new(store.http())
    }
}

impl Pair for S3Pair {
    type Operation = Operation;

    fn system(&self) -> System {
        System::S3(self.server)
    }

    fn sequence(seed: u64, number: u64) -> Vec<Operation> {
        generate::sequence(seed, number)
    }

    async fn open(&mut self, place: &str) -> Result<(), String> {
        let simulated = Side::new(self.simulated(), SIMULATED, &self.keys, place);
        let real = Side::new(self.real.clone(), &self.authority, &self.keys, place);
        self.sides = Some([simulated, real]);
        Ok(())
    }

    async fn step(&mut self, operation: &Operation) -> Result<AnswerPair, String> {
        let [simulated, real] = self.sides.as_mut().ok_or("no sequence is open")?;
        let (simulated, real) = match operation {
            Operation::Call(call) => (simulated.call(call).await?, real.call(call).await?),
            Operation::Pages(listing, first) => {
                (simulated.pages(*listing, first).await?, real.pages(*listing, first).await?)
            }
        };
        Ok(AnswerPair { simulated, real })
    }

    async fn close(&mut self) -> Result<(), String> {
        // The simulated store is dropped with its side.
        let Some([_, mut real]) = self.sides.take() else { return Ok(()) };
        for bucket in buckets_of(&mut real).await? {
            if !clear(&mut real, &bucket).await? {
                self.left.push(bucket);
            }
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Returns all buckets that the sequence created, including those that should have been refused.
async fn buckets_of(side: &mut Side) -> Result<Vec<String>, String> {
    let answer = side.send(&Call::to_store("GET")).await?;
    let place = side.text("$(place)");
    let list = answer.document.as_ref().map(|document| &document["ListAllMyBucketsResult"]["Buckets"]["Bucket"]);
    let names = list.and_then(Value::as_array).into_iter().flatten().filter_map(|bucket| bucket["Name"].as_str());
    Ok(names.filter(|name| name.starts_with(&place)).map(str::to_owned).collect())
}

fn on_bucket(method: &'static str, bucket: &str) -> Call {
    Call { bucket: Some(bucket.to_owned()), ..Call::to_store(method) }
}

/// Empties and deletes a bucket, if it exists. Returns true if it is gone.
async fn clear(side: &mut Side, bucket: &str) -> Result<bool, String> {
    for _ in 0..SWEEPS {
        let code = side.send(&on_bucket("DELETE", bucket)).await?.code;
        if code == 204 || code == 404 {
            return Ok(true);
        }
        remove_versions(side, bucket).await?;
        abort_uploads(side, bucket).await?;
    }
    Ok(false)
}

/// Deletes a page of versions. Lifts legal holds; those objects are deleted with the next page.
async fn remove_versions(side: &mut Side, bucket: &str) -> Result<(), String> {
    let found = side.send(&on_bucket("GET", bucket).of("versions")).await?;
    let page = found.document.as_ref().map(|document| &document["ListVersionsResult"]);
    let entries = ["Version", "DeleteMarker"].into_iter().filter_map(|field| page?[field].as_array()).flatten();
    let named =
        |entry: &Value| Some((entry["Key"].as_str()?.to_owned(), entry["VersionId"].as_str().map(str::to_owned)));
    let all: Vec<_> = entries.filter_map(named).collect();
    if all.is_empty() {
        return Ok(());
    }
    let delete = on_bucket("POST", bucket).of("delete").header("x-amz-bypass-governance-retention", "true");
    let answer = side.send(&delete.checked(bodies::delete(&all, false))).await?;
    let errors = answer.document.as_ref().and_then(|document| document["DeleteResult"]["Error"].as_array());
    for (key, id) in errors.into_iter().flatten().filter_map(named) {
        let hold = Call { key: Some(key), ..on_bucket("PUT", bucket) }.of("legal-hold").maybe("versionId", id);
        side.send(&hold.checked("<LegalHold><Status>OFF</Status></LegalHold>")).await?;
    }
    Ok(())
}

async fn abort_uploads(side: &mut Side, bucket: &str) -> Result<(), String> {
    let found = side.send(&on_bucket("GET", bucket).of("uploads")).await?;
    let uploads = found.document.as_ref().map(|document| &document["ListMultipartUploadsResult"]["Upload"]);
    for upload in uploads.and_then(Value::as_array).into_iter().flatten() {
        let (Some(key), Some(id)) = (upload["Key"].as_str(), upload["UploadId"].as_str()) else { continue };
        side.send(&Call { key: Some(key.to_owned()), ..on_bucket("DELETE", bucket) }.query("uploadId", id)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use s3_sim::{Dialect, ExistingOwnBucket};
    use stowage_world::serve::{self, RequestLog, Server as Served};

    use super::super::super::run::{ConformanceReport, Limits, Start, run};
    use super::*;

    fn keys() -> Keys {
        let (access_key, secret_key) = ("AKIATEST".to_owned(), "secret".to_owned());
        Keys { access_key, secret_key, region: "us-east-1".to_owned() }
    }

    fn limits(operations: u64, command: &str) -> Limits {
        let (prefix, command) = ("c".to_owned(), command.to_owned());
        Limits { seed: 1, operations, time: None, shrink: true, start: Start::From(0), prefix, command }
    }

    async fn served(dialect: Dialect) -> (Store, Served) {
        let store = Store::new(Arc::new(jiff::Timestamp::now), dialect);
        store.add_account("conformance", "AKIATEST", "secret");
        let address = "127.0.0.1:0".parse().expect("it is an address");
        let server = serve::store(address, &store, &RequestLog::default()).await.expect("a port is free");
        (store, server)
    }

    /// Compares the simulator with itself, the second one over HTTP.
    async fn against_itself(dialect: Dialect, operations: u64) -> ConformanceReport {
        let (store, server) = served(dialect).await;
        let url = server.url().parse().expect("a server has a URL");
        let mut pair = S3Pair::connect(&url, keys()).await.expect("the store answers");
        assert_eq!(pair.server(), Server::Other);
        let report = run(&mut pair, &limits(operations, "again"), |_| {}).await.expect("both sides answer");
        assert_eq!(pair.left(), [""; 0]);
        assert!(store.buckets().is_empty(), "all that was made is taken away");
        report
    }

    #[tokio::test]
    async fn the_simulated_store_agrees_with_itself_over_http() {
        let report = against_itself(Dialect::default(), 900).await;
        assert_eq!(report.differences, []);
        assert_eq!((report.unexplained, report.explained), (0, 0));
        assert!(report.operations >= 900);
    }

    #[tokio::test]
    async fn a_store_with_another_answer_is_found_out() {
        let dialect = Dialect { existing_own_bucket: ExistingOwnBucket::Ok, ..Dialect::default() };
        let report = against_itself(dialect, 600).await;
        let found = report.differences.first().expect("the first differences are told");
        assert!(found.operation.starts_with("PUT /$(place)-"), "{found}");
        assert!(found.leaves.iter().any(|leaf| leaf.path == "code" && leaf.simulated == 409 && leaf.real == 200));
        // One request creates the bucket, and the next one gets the error that it exists.
        assert_eq!(found.after.len(), 1, "{found}");
        assert_eq!(found.replay, format!("again --seed 1 --sequence {}", found.sequence));
    }

    #[tokio::test]
    async fn a_store_that_forgets_tags_is_found_out() {
        let report = against_itself(Dialect { tagging: false, ..Dialect::default() }, 600).await;
        assert!(report.unexplained > 0);
        assert!(report.differences.iter().any(|found| found.operation.contains("?tagging")));
    }

    #[tokio::test]
    async fn keys_that_are_of_no_use_are_told_at_once() {
        let (_, server) = served(Dialect::default()).await;
        let url: Uri = server.url().parse().expect("a server has a URL");
        let wrong = Keys { secret_key: "another".to_owned(), ..keys() };
        let told = S3Pair::connect(&url, wrong).await.expect_err("the store denies access");
        assert!(told.ends_with("answers ListBuckets with 403"), "{told}");
        let path: Uri = format!("{url}bucket").parse().expect("it is a URL");
        assert!(S3Pair::connect(&path, keys()).await.is_err_and(|why| why.contains("nothing behind it")));
    }
}
