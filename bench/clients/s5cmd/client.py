"""The client s5cmd."""

import matrix
from program import run


class S5cmd(matrix.Client):
    def run(self, *words):
        return run("s5cmd", "--endpoint-url", matrix.ENDPOINT, *words)

    def url(self, key):
        return f"s3://{matrix.BUCKET}/{key}"

    def put(self, key, data):
        with open("body", "wb") as file:
            file.write(data)
        self.run("cp", "--raw", "body", self.url(key))

    def get(self, key):
        return self.run("cat", "--raw", self.url(key))

    def get_range(self, key, first, last):
        raise matrix.Absent("s5cmd asks for ranges only of large objects, which multipart covers")

    def list(self, prefix):
        try:
            told = self.run("ls", "--show-fullpath", self.url(f"{prefix}*")).decode()
        except RuntimeError as nothing:
            if "no object found" in str(nothing):
                return []
            raise
        return [line.removeprefix(self.url("")) for line in told.splitlines()]

    def upload(self, path, key):
        self.run("cp", "--raw", path, self.url(key))

    def download(self, key, path):
        self.run("cp", "--raw", self.url(key), path)

    def copy(self, source, key):
        self.run("cp", "--raw", self.url(source), self.url(key))

    def delete_many(self, keys):
        self.run("rm", "--raw", *map(self.url, keys))

    def presign_get(self, key):
        return self.run("presign", "--expire", "5m", self.url(key)).decode().strip()

    def presign_put(self, key):
        raise matrix.Absent("s5cmd presign signs for GET alone")


matrix.play(S5cmd())
