"""The client obstore."""

from datetime import timedelta
from pathlib import Path

import obstore
from obstore.store import S3Store

import matrix


class Obstore(matrix.Client):
    def __init__(self):
        plain = matrix.ENDPOINT.startswith("http:")
        # Key, endpoint and region come from the environment.
        options = {"allow_http": plain} | ({"root_certificate": Path(matrix.CA).read_bytes()} if matrix.CA else {})
        self.store = S3Store(matrix.BUCKET, client_options=options)

    def put(self, key, data):
        obstore.put(self.store, key, data)

    def get(self, key):
        return bytes(obstore.get(self.store, key).bytes())

    def get_range(self, key, first, last):
        return bytes(obstore.get_range(self.store, key, start=first, end=last + 1))

    def list(self, prefix):
        return [it["path"] for it in obstore.list(self.store, prefix).collect()]

    def upload(self, path, key):
        obstore.put(self.store, key, Path(path), use_multipart=True, chunk_size=10 << 20)

    def copy(self, source, key):
        obstore.copy(self.store, source, key)

    def delete_many(self, keys):
        obstore.delete(self.store, keys)

    def presign_put(self, key):
        return obstore.sign(self.store, "PUT", key, timedelta(minutes=5))

    def presign_get(self, key):
        return obstore.sign(self.store, "GET", key, timedelta(minutes=5))


matrix.play(Obstore())
