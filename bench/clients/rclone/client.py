"""The client rclone."""

import os

import matrix
from program import run


class Rclone(matrix.Client):
    remote = f":s3:{matrix.BUCKET}/"
    settings = {
        "RCLONE_S3_PROVIDER": "Other",
        "RCLONE_S3_ENV_AUTH": "true",
        "RCLONE_S3_ENDPOINT": matrix.ENDPOINT,
        "RCLONE_S3_REGION": matrix.REGION,
        # A claim's key makes no buckets.
        "RCLONE_S3_NO_CHECK_BUCKET": "true",
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_CA_CERT": matrix.CA or "",
    }

    def run(self, *words):
        return run("rclone", *words, environment={name: value for name, value in self.settings.items() if value})

    def put(self, key, data):
        with open("body", "wb") as file:
            file.write(data)
        self.run("copyto", "body", self.remote + key)

    def get(self, key):
        return self.run("cat", self.remote + key)

    def get_range(self, key, first, last):
        return self.run("cat", "--offset", str(first), "--count", str(last - first + 1), self.remote + key)

    def list(self, prefix):
        told = self.run("lsf", "--recursive", "--files-only", self.remote + prefix).decode()
        return [prefix + line for line in told.splitlines()]

    def upload(self, path, key):
        self.run("copyto", "--s3-upload-cutoff", "16M", path, self.remote + key)

    def download(self, key, path):
        self.run("copyto", self.remote + key, path)

    def copy(self, source, key):
        self.run("copyto", self.remote + source, self.remote + key)

    def delete_many(self, keys):
        raise matrix.Absent("rclone deletes one by one")

    def presign_get(self, key):
        return self.run("link", "--expire", "5m", self.remote + key).decode().strip()

    def presign_put(self, key):
        raise matrix.Absent("rclone link signs for GET alone")


matrix.play(Rclone())
