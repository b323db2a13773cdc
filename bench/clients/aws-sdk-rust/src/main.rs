//! The client AWS SDK for Rust.

use std::time::Duration;

use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart, Delete, ObjectIdentifier};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use matrix::{Client, Result, field};

const PART: usize = 10 << 20;

struct Sdk {
    s3: aws_sdk_s3::Client,
    bucket: String,
}

fn minutes() -> Result<PresigningConfig> {
    Ok(PresigningConfig::expires_in(Duration::from_secs(300))?)
}

impl Client for Sdk {
    async fn put(&self, key: &str, data: Vec<u8>) -> Result<()> {
        self.s3.put_object().bucket(&self.bucket).key(key).body(data.into()).send().await?;
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>> {
        let answer = self.s3.get_object().bucket(&self.bucket).key(key).send().await?;
        Ok(answer.body.collect().await?.to_vec())
    }

    async fn get_range(&self, key: &str, first: u64, last: u64) -> Result<Vec<u8>> {
        let range = format!("bytes={first}-{last}");
        let answer = self.s3.get_object().bucket(&self.bucket).key(key).range(range).send().await?;
        Ok(answer.body.collect().await?.to_vec())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let list = self.s3.list_objects_v2().bucket(&self.bucket).prefix(prefix).max_keys(3);
        let (mut pages, mut keys) = (list.into_paginator().send(), Vec::new());
        while let Some(page) = pages.next().await {
            keys.extend(page?.contents.unwrap_or_default().into_iter().filter_map(|object| object.key));
        }
        Ok(keys)
    }

    async fn upload(&self, key: &str, data: Vec<u8>) -> Result<()> {
        let Self { s3, bucket } = self;
        let upload = s3.create_multipart_upload().bucket(bucket).key(key).send().await?;
        let id = upload.upload_id.ok_or("no id of the upload")?;
        let mut done = CompletedMultipartUpload::builder();
        for (number, part) in (1..).zip(data.chunks(PART)) {
            let part = s3.upload_part().bucket(bucket).key(key).upload_id(&id).part_number(number).body(part.to_vec().into());
            let part = CompletedPart::builder().part_number(number).set_e_tag(part.send().await?.e_tag).build();
            done = done.parts(part);
        }
        let complete = s3.complete_multipart_upload().bucket(bucket).key(key).upload_id(&id);
        complete.multipart_upload(done.build()).send().await?;
        Ok(())
    }

    async fn copy(&self, source: &str, key: &str) -> Result<()> {
        let source = format!("{}/{source}", self.bucket);
        self.s3.copy_object().bucket(&self.bucket).key(key).copy_source(source).send().await?;
        Ok(())
    }

    async fn delete_many(&self, keys: Vec<String>) -> Result<()> {
        let objects = keys.into_iter().map(|key| ObjectIdentifier::builder().key(key).build());
        let delete = Delete::builder().set_objects(Some(objects.collect::<std::result::Result<_, _>>()?)).build()?;
        let answer = self.s3.delete_objects().bucket(&self.bucket).delete(delete).send().await?;
        let deleted = answer.deleted.unwrap_or_default().len();
        if deleted == 5 { Ok(()) } else { Err(format!("{deleted} are told as deleted").into()) }
    }

    async fn presign_put(&self, key: &str) -> Result<String> {
        let put = self.s3.put_object().bucket(&self.bucket).key(key).presigned(minutes()?).await?;
        Ok(put.uri().to_owned())
    }

    async fn presign_get(&self, key: &str) -> Result<String> {
        let get = self.s3.get_object().bucket(&self.bucket).key(key).presigned(minutes()?).await?;
        Ok(get.uri().to_owned())
    }
}

#[tokio::main]
async fn main() {
    matrix::begin();
    // The SDK reads key, region and endpoint from the environment, and rustls the authority from
    // SSL_CERT_FILE.
    let http = aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let environment = aws_config::defaults(aws_config::BehaviorVersion::latest()).http_client(http).load().await;
    let config = aws_sdk_s3::config::Builder::from(&environment).force_path_style(true).build();
    matrix::play(Sdk { s3: aws_sdk_s3::Client::from_conf(config), bucket: field("BUCKET_NAME") }).await;
}
