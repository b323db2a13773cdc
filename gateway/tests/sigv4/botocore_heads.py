"""Writes heads that botocore signed, one JSON object a line: `botocore_heads.py COUNT [SEED]`."""

import datetime
import json
import random
import sys
from urllib.parse import quote, urlsplit

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

COUNT = int(sys.argv[1])
CHOICE = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
LETTERS = [chr(c) for c in range(0x20, 0x7F)] + list("éß漢字🦀\u0301\ufffd")
NAMES = ["content-type", "content-md5", "range", "cache-control", "expect", "accept-encoding", "x-amz-tagging"]
PARAMETERS = ["prefix", "delimiter", "list-type", "uploadId", "partNumber", "x-amz-checksum-crc32", "uploads", "a b"]


def text(most, letters=LETTERS):
    return "".join(CHOICE.choice(letters) for _ in range(CHOICE.randint(0, most)))


def word(least, most, letters="abcdefghijklmnopqrstuvwxyz0123456789-_"):
    return "".join(CHOICE.choice(letters) for _ in range(CHOICE.randint(least, most)))


def value():
    # Blanks at the ends, runs of them and tabs are what differs between signers.
    return text(20, LETTERS + [" ", "  ", "\t"] * 8).replace("\u0301", "")


def payload():
    return CHOICE.choice([word(64, 64, "0123456789abcdef"), "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])


def signer(presigned, secret, region):
    credentials = Credentials("vc-" + word(1, 40), secret)
    if presigned:
        expires = CHOICE.randint(1, 604800)
        return botocore.auth.S3SigV4QueryAuth(credentials, "s3", region, expires=expires)
    return botocore.auth.S3SigV4Auth(credentials, "s3", region)


def head():
    presigned = CHOICE.random() < 0.4
    secret, region = word(1, 90, [chr(c) for c in range(0x21, 0x7F)]), word(1, 20)
    path = "/" + quote(text(40), safe="/~")
    parameters = {CHOICE.choice(PARAMETERS + [word(1, 8)]): text(12) for _ in range(CHOICE.randint(0, 5))}
    query = "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in parameters.items())
    host = CHOICE.choice(["s3.example.org", "b.s3.example.org:8000", "127.0.0.1:9000"])
    names = {CHOICE.choice(NAMES + ["x-amz-meta-" + word(1, 9)]) for _ in range(CHOICE.randint(0, 8))}
    headers = {name: value() for name in sorted(names)}
    if not presigned and CHOICE.random() < 0.2:
        headers["Date"] = "replaced"
    method = CHOICE.choice(["GET", "PUT", "HEAD", "POST", "DELETE"])
    request = AWSRequest(method=method, url=f"http://{host}{path}{'?' + query if query else ''}", headers=headers)
    last = "UNSIGNED-PAYLOAD" if presigned else payload()
    auth = signer(presigned, secret, region)
    auth.payload = lambda _: last
    now = datetime.datetime.fromtimestamp(CHOICE.randint(0, 4102444799), datetime.timezone.utc)
    botocore.auth.get_current_datetime = lambda *_, **__: now
    auth.add_auth(request)
    url = urlsplit(request.url)
    sent = [(name.lower(), content) for name, content in request.headers.items()] + [("host", url.netloc)]
    target = url.path + ("?" + url.query if url.query else "")
    return dict(method=method, target=target, headers=sent, payload=last, secret=secret, region=region)


for _ in range(COUNT):
    print(json.dumps(head()))
