"""The client s3fs."""

import s3fs

import matrix


class S3fs(matrix.Client):
    def __init__(self):
        # Key and region come from the environment. Without the version, URLs are presigned with Signature Version 2.
        self.fs = s3fs.S3FileSystem(
            endpoint_url=matrix.ENDPOINT, config_kwargs={"signature_version": "s3v4"}, use_listings_cache=False
        )

    def path(self, key):
        return f"{matrix.BUCKET}/{key}"

    def put(self, key, data):
        self.fs.pipe_file(self.path(key), data)

    def get(self, key):
        return self.fs.cat_file(self.path(key))

    def get_range(self, key, first, last):
        with self.fs.open(self.path(key)) as file:
            file.seek(first)
            return file.read(last - first + 1)

    def list(self, prefix):
        return [it.removeprefix(f"{matrix.BUCKET}/") for it in self.fs.find(self.path(prefix))]

    def upload(self, path, key):
        self.fs.put_file(path, self.path(key), chunksize=10 << 20)

    def download(self, key, path):
        self.fs.get_file(self.path(key), path)

    def copy(self, source, key):
        self.fs.copy(self.path(source), self.path(key))

    def delete_many(self, keys):
        self.fs.rm([self.path(key) for key in keys])

    def presign_put(self, key):
        return self.fs.sign(self.path(key), expiration=300, client_method="put_object")

    def presign_get(self, key):
        return self.fs.sign(self.path(key), expiration=300)


matrix.play(S3fs())
