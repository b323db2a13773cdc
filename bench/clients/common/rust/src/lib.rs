//! The operations of every client of the matrix, and the checks of their results (see
//! ../../../README.md).

use std::error::Error;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The operations of a client.
#[allow(async_fn_in_trait, reason = "nobody else implements it")]
pub trait Client {
    async fn put(&self, key: &str, data: Vec<u8>) -> Result<()>;
    async fn get(&self, key: &str) -> Result<Vec<u8>>;
    async fn get_range(&self, key: &str, first: u64, last: u64) -> Result<Vec<u8>>;
    async fn list(&self, prefix: &str) -> Result<Vec<String>>;
    async fn upload(&self, key: &str, data: Vec<u8>) -> Result<()>;
    async fn copy(&self, source: &str, key: &str) -> Result<()>;
    async fn delete_many(&self, keys: Vec<String>) -> Result<()>;
    async fn presign_put(&self, key: &str) -> Result<String>;
    async fn presign_get(&self, key: &str) -> Result<String>;
}

/// Keys that are encoded differently in a path, a query, XML and a header.
const ODD: [&str; 7] = [
    "odd/a b+c%2Fd.txt",
    "odd/&amp;<x>='\"",
    "odd/ä€😀.txt",
    "odd/(x)!*~_-.,;:@$",
    "odd/q?x=1#y",
    "odd/%41%zz",
    "odd/deep/er/key",
];

/// Returns a field of the claim's Secret.
pub fn field(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Returns pseudorandom bytes.
fn bytes(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn same<T: PartialEq>(found: &T, expected: &T, what: &str) -> Result<()> {
    if found == expected { Ok(()) } else { Err(format!("{what} is not what was put").into()) }
}

async fn lists(client: &impl Client, prefix: &str, expected: &[&str]) -> Result<()> {
    let (mut found, mut expected) = (client.list(prefix).await?, expected.to_vec());
    found.sort();
    expected.sort();
    if found == expected { Ok(()) } else { Err(format!("keys below {prefix} are {found:?}, not {expected:?}").into()) }
}

/// Sends a plain request, like a client that has only a URL.
async fn ask(request: reqwest::RequestBuilder) -> Result<Vec<u8>> {
    let answer = request.send().await?;
    let (status, body) = (answer.status(), answer.bytes().await?);
    if status != 200 {
        return Err(format!("{status} {}", String::from_utf8_lossy(&body)).into());
    }
    Ok(body.to_vec())
}

async fn operation(name: &str, client: &impl Client) -> Result<()> {
    let small = bytes(3000);
    match name {
        "put" => client.put("plain", small).await,
        "get" => same(&client.get("plain").await?, &small, "the object"),
        "range" => same(&client.get_range("plain", 100, 299).await?, &small[100..300].to_vec(), "the range"),
        "list" => {
            for key in ODD {
                client.put(key, key.as_bytes().to_vec()).await?;
            }
            lists(client, "odd/", &ODD).await?;
            for key in ODD {
                same(&client.get(key).await?, &key.as_bytes().to_vec(), key)?;
            }
            Ok(())
        }
        "multipart" => {
            let big = bytes(field("MULTIPART_BYTES").parse()?);
            client.upload("big", big.clone()).await?;
            same(&client.get("big").await?, &big, "the large object")
        }
        "copy" => {
            client.copy("plain", "copies/a b+ä").await?;
            same(&client.get("copies/a b+ä").await?, &small, "the copy")
        }
        "delete-many" => {
            let keys: Vec<String> = (0..5).map(|number| format!("many/{number} &+")).collect();
            for key in &keys {
                client.put(key, b"x".to_vec()).await?;
            }
            client.delete_many(keys).await?;
            lists(client, "many/", &[]).await
        }
        "presigned-put" => {
            let url = client.presign_put("presigned/a b+ä").await?;
            ask(reqwest::Client::new().put(url).body(small.clone())).await?;
            same(&client.get("presigned/a b+ä").await?, &small, "what was put by the URL")
        }
        "presigned-get" => {
            client.put("presigned/c d+ö", small.clone()).await?;
            let url = client.presign_get("presigned/c d+ö").await?;
            same(&ask(reqwest::Client::new().get(url)).await?, &small, "what the URL gives")
        }
        _ => Err("nobody knows it".into()),
    }
}

/// Selects ring as the TLS provider. Must be called first.
pub fn begin() {
    rustls::crypto::ring::default_provider().install_default().expect("nobody was before");
}

/// Performs all operations with this client, and prints their results.
pub async fn play(client: impl Client) {
    let names =
        ["put", "get", "range", "list", "multipart", "copy", "delete-many", "presigned-put", "presigned-get"];
    for name in names {
        match operation(name, &client).await {
            Ok(()) => println!("{name} ok"),
            Err(why) => println!("{name} failed: {}", format!("{why:?}").split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
    println!("form none: the client makes no forms");
}
