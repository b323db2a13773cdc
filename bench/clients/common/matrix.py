"""What every client of the matrix does, and what it has to read back (see ../README.md).

A client is a class with methods for what it can do; this module calls them, compares, and says on stdout what came of
each operation, one a line: `put ok`, `form none: the client has no forms`, `copy failed: what`.
"""

import hashlib
import os
import random
import ssl
import sys
import traceback
import urllib.error
import urllib.request
import uuid
from pathlib import Path

ENDPOINT = os.environ["AWS_ENDPOINT_URL"]
REGION = os.environ["AWS_REGION"]
BUCKET = os.environ["BUCKET_NAME"]
KEY_ID = os.environ["AWS_ACCESS_KEY_ID"]
SECRET = os.environ["AWS_SECRET_ACCESS_KEY"]
CA = os.environ.get("AWS_CA_BUNDLE")
HOME = Path(os.environ["CLIENT_HOME"])
MULTIPART = int(os.environ["MULTIPART_BYTES"])

# Names that are written otherwise in a path, in a query, in XML or in a header.
ODD = [
    "odd/a b+c%2Fd.txt",
    "odd/&amp;<x>='\"",
    "odd/ä€😀.txt",
    "odd/(x)!*~_-.,;:@$",
    "odd/q?x=1#y",
    "odd/%41%zz",
    "odd/deep/er/key",
]

# Random, and the same in every run.
_random = random.Random(41)
SMALL = _random.randbytes(3000)


class Absent(Exception):
    """The client has nothing for this operation."""


class Client:
    """A client of S3. What a subclass doesn't have is told as absent."""

    def put(self, key, data):
        raise Absent("the client can't put")

    def get(self, key):
        raise Absent("the client can't get")

    def get_range(self, key, first, last):
        raise Absent("the client asks for no ranges")

    def list(self, prefix):
        raise Absent("the client can't list")

    def upload(self, path, key):
        raise Absent("the client uploads no files")

    def download(self, key, path):
        Path(path).write_bytes(self.get(key))

    def copy(self, source, key):
        raise Absent("the client has the store copy nothing")

    def delete_many(self, keys):
        raise Absent("the client deletes one by one")

    def presign_put(self, key):
        raise Absent("the client signs no URLs for others")

    def presign_get(self, key):
        raise Absent("the client signs no URLs for others")

    def form(self, key, most):
        """URL and fields of a form that may put `key`, with at most so many bytes."""
        raise Absent("the client makes no forms")


def same(found, expected, what):
    if found != expected:
        short = lambda it: f"{len(it)} bytes" if isinstance(it, (bytes, bytearray)) else repr(it)
        raise AssertionError(f"{what}: {short(found)}, not {short(expected)}")


def http(method, url, data=None, headers=None):
    """One plain request, as somebody makes it who has nothing but a URL."""
    request = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    context = ssl.create_default_context(cafile=CA) if url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def expect(answer, status, what):
    if answer[0] != status:
        raise AssertionError(f"{what}: {answer[0]} {answer[1][:300]!r}, not {status}")
    return answer[1]


def put(client):
    client.put("plain", SMALL)


def get(client):
    same(client.get("plain"), SMALL, "what was put")


def ranged(client):
    same(client.get_range("plain", 100, 299), SMALL[100:300], "bytes 100 to 299")


def listed(client):
    for number, key in enumerate(ODD):
        client.put(key, f"odd {number}".encode())
    same(sorted(client.list("odd/")), sorted(ODD), "keys below odd/")
    for number, key in enumerate(ODD):
        same(client.get(key), f"odd {number}".encode(), key)


def multipart(client):
    block, digest = _random.randbytes(1 << 20), hashlib.sha256()
    with open("big", "wb") as file:
        for number in range(0, MULTIPART, len(block)):
            part = (block[number >> 20 & 0xFFFF :] + block[: number >> 20 & 0xFFFF])[: MULTIPART - number]
            digest.update(part)
            file.write(part)
    client.upload("big", "big")
    client.download("big", "big.back")
    with open("big.back", "rb") as file:
        same(hashlib.file_digest(file, "sha256").hexdigest(), digest.hexdigest(), "SHA-256 of what came back")


def copy(client):
    client.copy("plain", "copies/a b+ä")
    same(client.get("copies/a b+ä"), SMALL, "the copy")


def delete_many(client):
    keys = [f"many/{number} &+" for number in range(5)]
    for key in keys:
        client.put(key, b"x")
    client.delete_many(keys)
    same(sorted(client.list("many/")), [], "keys below many/ when all are deleted")


def presigned_put(client):
    expect(http("PUT", client.presign_put("presigned/a b+ä"), SMALL), 200, "PUT")
    same(client.get("presigned/a b+ä"), SMALL, "what was put by the URL")


def presigned_get(client):
    client.put("presigned/c d+ö", SMALL)
    same(expect(http("GET", client.presign_get("presigned/c d+ö")), 200, "GET"), SMALL, "what the URL gives")


def form(client):
    url, fields = client.form("form/a b", 4000)
    for size, status in [(3000, 204), (4001, 400)]:
        boundary, data = uuid.uuid4().hex, b""
        for name, value in fields.items():
            data += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        data += f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'.encode()
        data += (SMALL * 2)[:size] + f"\r\n--{boundary}--\r\n".encode()
        content = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        expect(http("POST", url, data, content), status, f"a form with {size} bytes")
    same(client.get("form/a b"), SMALL, "what the form put")


OPERATIONS = [
    ("put", put),
    ("get", get),
    ("range", ranged),
    ("list", listed),
    ("multipart", multipart),
    ("copy", copy),
    ("delete-many", delete_many),
    ("presigned-put", presigned_put),
    ("presigned-get", presigned_get),
    ("form", form),
]


def play(client):
    """Does everything with this client, and says what came of it."""
    for name, operation in OPERATIONS:
        try:
            operation(client)
            told = "ok"
        except Absent as why:
            told = f"none: {why}"
        except Exception as why:
            traceback.print_exc()
            told = f"failed: {type(why).__name__}: {why}"
        print(name, " ".join(told.split()), flush=True)
    sys.exit(0)
