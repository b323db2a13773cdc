"""The client pyarrow."""

from pyarrow import fs

import matrix


class PyArrow(matrix.Client):
    def __init__(self):
        scheme, host = matrix.ENDPOINT.split("://")
        options = {"tls_ca_file_path": matrix.CA} if matrix.CA else {}
        self.s3 = fs.S3FileSystem(endpoint_override=host, scheme=scheme, region=matrix.REGION, **options)

    def path(self, key):
        return f"{matrix.BUCKET}/{key}"

    def put(self, key, data):
        with self.s3.open_output_stream(self.path(key)) as stream:
            stream.write(data)

    def get(self, key):
        with self.s3.open_input_stream(self.path(key)) as stream:
            return stream.read()

    def get_range(self, key, first, last):
        with self.s3.open_input_file(self.path(key)) as file:
            file.seek(first)
            return file.read(last - first + 1)

    def list(self, prefix):
        found = self.s3.get_file_info(fs.FileSelector(self.path(prefix.rstrip("/")), recursive=True, allow_not_found=True))
        return [it.path.removeprefix(f"{matrix.BUCKET}/") for it in found if it.type == fs.FileType.File]

    def upload(self, path, key):
        with open(path, "rb") as file, self.s3.open_output_stream(self.path(key)) as stream:
            while part := file.read(1 << 20):
                stream.write(part)

    def copy(self, source, key):
        self.s3.copy_file(self.path(source), self.path(key))

    def delete_many(self, keys):
        self.s3.delete_dir_contents(self.path("many"), missing_dir_ok=True)


matrix.play(PyArrow())
