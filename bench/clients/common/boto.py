"""The client boto3, in whichever version."""

import boto3
from botocore.config import Config

import matrix


class Boto3(matrix.Client):
    def __init__(self):
        # Endpoint, key and region come from the environment. Older ones don't read the endpoint's variable.
        self.s3 = boto3.client("s3", endpoint_url=matrix.ENDPOINT, config=Config(signature_version="s3v4"))

    def put(self, key, data):
        self.s3.put_object(Bucket=matrix.BUCKET, Key=key, Body=data, Metadata={"who": "me"})

    def get(self, key):
        return self.s3.get_object(Bucket=matrix.BUCKET, Key=key)["Body"].read()

    def get_range(self, key, first, last):
        return self.s3.get_object(Bucket=matrix.BUCKET, Key=key, Range=f"bytes={first}-{last}")["Body"].read()

    def list(self, prefix):
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=matrix.BUCKET, Prefix=prefix, PaginationConfig={"PageSize": 3}
        )
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def upload(self, path, key):
        self.s3.upload_file(path, matrix.BUCKET, key)

    def download(self, key, path):
        self.s3.download_file(matrix.BUCKET, key, path)

    def copy(self, source, key):
        self.s3.copy({"Bucket": matrix.BUCKET, "Key": source}, matrix.BUCKET, key)

    def delete_many(self, keys):
        deleted = self.s3.delete_objects(Bucket=matrix.BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
        matrix.same(sorted(it["Key"] for it in deleted["Deleted"]), sorted(keys), "keys told as deleted")

    def presign_put(self, key):
        return self.s3.generate_presigned_url("put_object", {"Bucket": matrix.BUCKET, "Key": key}, ExpiresIn=300)

    def presign_get(self, key):
        return self.s3.generate_presigned_url("get_object", {"Bucket": matrix.BUCKET, "Key": key}, ExpiresIn=300)

    def form(self, key, most):
        size = ["content-length-range", 1, most]
        made = self.s3.generate_presigned_post(matrix.BUCKET, key, Conditions=[size], ExpiresIn=300)
        return made["url"], made["fields"]
