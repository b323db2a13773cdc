//! The gateway's verification of requests signed by botocore. `botocore_heads.py` next to this file
//! generates heads, forty of which are in `botocore_heads.jsonl`. For more:
//!
//! ```sh
//! python3 gateway/tests/sigv4/botocore_heads.py 100000 2 > heads.jsonl
//! HEADS=heads.jsonl cargo test --release -p stowage-gateway --test sigv4 botocore
//! ```

use std::io::BufRead as _;

use serde::Deserialize;
use stowage_gateway::uri::encode;

use super::Head;

/// A line of the file: a head as botocore would send it, with its values as the signed text.
#[derive(Deserialize)]
struct Line {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    payload: String,
    secret: String,
    region: String,
}

#[test]
fn what_botocore_signs_is_verified() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sigv4/botocore_heads.jsonl");
    let file = std::env::var("HEADS").unwrap_or_else(|_| kept.to_owned());
    let lines = std::io::BufReader::new(std::fs::File::open(file).expect("it can be opened")).lines();
    let mut heads = 0;
    for line in lines {
        let line = line.expect("it can be read");
        let given: Line = serde_json::from_str(&line).expect("a head");
        let head = Head::read(&given.method, &given.target, &given.headers);
        if let Err(refusal) = head.verify(&given.payload, &given.secret, &given.region) {
            panic!("{refusal:?}: {line}");
        }
        let other = Head { path: [head.path.as_slice(), b"x"].concat(), ..head };
        let (path, refused) = (encode(&other.path), other.verify(&given.payload, &given.secret, &given.region));
        assert!(refused.is_err(), "another path is another request: {path}");
        heads += 1;
    }
    assert!(heads > 0, "there are heads");
}
