"""The AWS command line, in either version."""

import json
from pathlib import Path

import matrix
from program import run


class Aws(matrix.Client):
    def api(self, operation, **arguments):
        flags = [word for name, value in arguments.items() for word in (f"--{name.replace('_', '-')}", value)]
        return run("aws", "s3api", operation, "--endpoint-url", matrix.ENDPOINT, "--bucket", matrix.BUCKET, *flags)

    def s3(self, *words):
        return run("aws", "s3", *words, "--endpoint-url", matrix.ENDPOINT)

    def url(self, key):
        return f"s3://{matrix.BUCKET}/{key}"

    def put(self, key, data):
        Path("body").write_bytes(data)
        self.api("put-object", key=key, body="body")

    def get(self, key):
        return self.s3("cp", self.url(key), "-")

    def get_range(self, key, first, last):
        done = run(
            "aws", "s3api", "get-object", "--endpoint-url", matrix.ENDPOINT, "--bucket", matrix.BUCKET,
            "--key", key, "--range", f"bytes={first}-{last}", "range",
        )
        matrix.same(json.loads(done)["ContentLength"], last - first + 1, "length")
        return Path("range").read_bytes()

    def list(self, prefix):
        found = self.api("list-objects-v2", prefix=prefix, page_size="3")
        return [it["Key"] for it in (json.loads(found) if found.strip() else {}).get("Contents", [])]

    def upload(self, path, key):
        self.s3("cp", "--only-show-errors", path, self.url(key))

    def download(self, key, path):
        self.s3("cp", "--only-show-errors", self.url(key), path)

    def copy(self, source, key):
        self.s3("cp", "--only-show-errors", self.url(source), self.url(key))

    def delete_many(self, keys):
        self.api("delete-objects", delete=json.dumps({"Objects": [{"Key": key} for key in keys]}))

    def presign_put(self, key):
        raise matrix.Absent("aws s3 presign signs for GET alone")

    def presign_get(self, key):
        return self.s3("presign", self.url(key), "--expires-in", "300").decode().strip()
