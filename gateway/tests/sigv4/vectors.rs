//! The examples of Amazon S3's API reference.

use ring::digest;
use rstest::rstest;
use stowage_api::SecretKey;
use stowage_gateway::sigv4::{Chain, Outgoing, Signer, SigningSecret, verify};

use super::{Head, time};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const REGION: &str = "us-east-1";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn authorization(signed: &str, signature: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
         SignedHeaders={signed},Signature={signature}"
    )
}

fn with_auth<'a>(headers: &[(&'a str, &'a str)], authorization: &'a str) -> Vec<(&'a str, &'a str)> {
    [headers, &[("authorization", authorization)]].concat()
}

const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
const DATE: (&str, &str) = ("x-amz-date", "20130524T000000Z");

#[rstest]
#[case::get_object(
    "GET", "/test.txt", EMPTY,
    &[HOST, ("range", "bytes=0-9"), ("x-amz-content-sha256", EMPTY), DATE],
    "host;range;x-amz-content-sha256;x-amz-date",
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
)]
#[case::put_object(
    "PUT", "/test%24file.text", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
    &[
        ("date", "Fri, 24 May 2013 00:00:00 GMT"), HOST,
        ("x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"), DATE,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ],
    "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
)]
#[case::get_bucket_lifecycle(
    "GET", "/?lifecycle", EMPTY, &[HOST, ("x-amz-content-sha256", EMPTY), DATE], "host;x-amz-content-sha256;x-amz-date",
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
)]
#[case::list_objects(
    "GET", "/?max-keys=2&prefix=J", EMPTY, &[HOST, ("x-amz-content-sha256", EMPTY), DATE],
    "host;x-amz-content-sha256;x-amz-date",
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
)]
fn in_the_header(
    #[case] method: &str,
    #[case] target: &str,
    #[case] payload: &str,
    #[case] headers: &[(&str, &str)],
    #[case] signed: &str,
    #[case] signature: &str,
) {
    let authorization = authorization(signed, signature);
    let head = Head::read(method, target, &with_auth(headers, &authorization));
    assert_eq!(head.claim().access_key_id, "AKIAIOSFODNN7EXAMPLE");
    assert_eq!(head.claim().time, time("2013-05-24T00:00:00Z"));
    head.verify(payload, SECRET, REGION).expect("AWS's own signature");
}

const PRESIGNED: &str = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
    &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z\
    &X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
    &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";

#[rstest]
#[case("2013-05-24T00:00:00Z", true)]
#[case("2013-05-25T00:00:00Z", true)]
#[case("2013-05-25T00:00:01Z", false)]
#[case("2013-05-23T23:45:00Z", true)]
#[case("2013-05-23T23:44:59Z", false)]
fn in_the_query(#[case] now: &str, #[case] holds: bool) {
    let head = Head::read("GET", PRESIGNED, &[HOST]);
    let secret = SigningSecret::new(&SecretKey::new(SECRET.into()));
    let verified = verify(&head.raw(), &head.claim(), "UNSIGNED-PAYLOAD", &secret, REGION, time(now));
    assert_eq!(verified.is_ok(), holds, "{verified:?}");
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().expect("32 bytes")
}

/// 66,560 bytes `a`: a chunk of 64 KiB, one of 1 KiB, and the empty one.
fn chunks() -> [[u8; 32]; 3] {
    [sha256(&[b'a'; 65_536]), sha256(&[b'a'; 1024]), sha256(b"")]
}

fn check_chunks(chain: &mut Chain, signatures: &[&str; 3]) {
    for (hash, signature) in chunks().iter().zip(signatures) {
        assert!(!chain.check_chunk(&sha256(b"b"), signature), "other data");
        assert!(!chain.check_chunk(hash, &signature.to_uppercase()), "other digits");
        assert!(!chain.check_trailer(hash, signature), "not a trailer");
        assert!(chain.check_chunk(hash, signature), "{signature}");
        assert!(!chain.check_chunk(hash, signature), "each once");
    }
}

fn chunked_head(payload: &'static str, more: &[(&'static str, &'static str)], signed: &str, seed: &str) -> Head {
    let authorization = authorization(signed, seed);
    let headers = [
        ("host", "s3.amazonaws.com"),
        DATE,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ("x-amz-content-sha256", payload),
        ("content-encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", "66560"),
    ];
    Head::read("PUT", "/examplebucket/chunkObject.txt", &with_auth(&[&headers, more].concat(), &authorization))
}

#[test]
fn in_chunks() {
    let payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
    let head = chunked_head(
        payload,
        &[("content-length", "66824")],
        "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;\
         x-amz-storage-class",
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    );
    let verified = head.verify(payload, SECRET, REGION).expect("AWS's own signature");
    let signatures = [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ];
    check_chunks(&mut verified.chain(), &signatures);
    let [_, second, _] = chunks();
    assert!(!verified.chain().check_chunk(&second, signatures[1]), "a chunk can't be left out");
}

#[test]
fn in_chunks_with_a_trailer() {
    let payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
    let head = chunked_head(
        payload,
        &[("x-amz-trailer", "x-amz-checksum-crc32c")],
        "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;\
         x-amz-trailer",
        "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
    );
    let verified = head.verify(payload, SECRET, REGION).expect("AWS's own signature");
    let mut chain = verified.chain();
    check_chunks(
        &mut chain,
        &[
            "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
            "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
            "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
        ],
    );
    let signature = "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435";
    assert!(!chain.check_trailer(&sha256(b"x-amz-checksum-crc32c:sOO8/Q=="), signature), "its line ends");
    assert!(chain.check_trailer(&sha256(b"x-amz-checksum-crc32c:sOO8/Q==\n"), signature));
}

/// The gateway's own signature equals the example's if the same headers are signed.
#[test]
fn towards_a_store() {
    let signer = Signer::new("AKIAIOSFODNN7EXAMPLE".into(), &SecretKey::new(SECRET.into()), REGION.into());
    let outgoing = Outgoing { method: "GET", host: HOST.1, path: b"/test.txt", query: &[], payload: EMPTY };
    let mut headers = Head::read("GET", "/", &[("range", "bytes=0-9"), ("accept", "*/*")]).headers;
    for round in ["derived", "cached"] {
        headers.insert("authorization", "a client's own".parse().expect("a value"));
        signer.sign(&outgoing, &mut headers, time("2013-05-24T00:00:00Z")).expect("all can stand in headers");
        let expected = authorization(
            "host;range;x-amz-content-sha256;x-amz-date",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        );
        let authorization = headers.get("authorization").expect("it is signed");
        assert_eq!(authorization.to_str().expect("ASCII").replace(", ", ","), expected, "{round}");
        assert!(authorization.is_sensitive());
        assert_eq!(headers.len(), 6);
    }
}
