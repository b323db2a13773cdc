"""The client minio-py."""

import io
from datetime import datetime, timedelta, timezone

from minio import Minio
from minio.commonconfig import CopySource
from minio.datatypes import PostPolicy
from minio.deleteobjects import DeleteObject

import matrix


class MinioPy(matrix.Client):
    def __init__(self):
        scheme, host = matrix.ENDPOINT.split("://")
        # Its region it asks the gateway for.
        self.minio = Minio(
            endpoint=host, access_key=matrix.KEY_ID, secret_key=matrix.SECRET, secure=scheme == "https"
        )

    def put(self, key, data):
        self.minio.put_object(matrix.BUCKET, key, io.BytesIO(data), len(data))

    def get(self, key):
        return self.minio.get_object(matrix.BUCKET, key).read()

    def get_range(self, key, first, last):
        return self.minio.get_object(matrix.BUCKET, key, offset=first, length=last - first + 1).read()

    def list(self, prefix):
        return [it.object_name for it in self.minio.list_objects(matrix.BUCKET, prefix=prefix, recursive=True)]

    def upload(self, path, key):
        self.minio.fput_object(matrix.BUCKET, key, path, part_size=10 << 20)

    def download(self, key, path):
        self.minio.fget_object(matrix.BUCKET, key, path)

    def copy(self, source, key):
        self.minio.copy_object(matrix.BUCKET, key, CopySource(matrix.BUCKET, source))

    def delete_many(self, keys):
        matrix.same(list(self.minio.remove_objects(matrix.BUCKET, map(DeleteObject, keys))), [], "what was not deleted")

    def presign_put(self, key):
        return self.minio.presigned_put_object(matrix.BUCKET, key, expires=timedelta(minutes=5))

    def presign_get(self, key):
        return self.minio.presigned_get_object(matrix.BUCKET, key, expires=timedelta(minutes=5))

    def form(self, key, most):
        policy = PostPolicy(matrix.BUCKET, datetime.now(timezone.utc) + timedelta(minutes=5))
        policy.add_equals_condition("key", key)
        policy.add_content_length_range_condition(1, most)
        fields = self.minio.presigned_post_policy(policy)
        return f"{matrix.ENDPOINT}/{matrix.BUCKET}", {"key": key, **fields}


matrix.play(MinioPy())
