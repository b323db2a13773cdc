"""A plug-in of pytest, with which the suite finds claims' buckets where it would make some, and which reports.

The suite makes a bucket for each test, and needs somebody's key who may. A claim's key makes none. So the first bucket that
a test makes is the claim's, emptied before; any other is asked for as it is, and refused. A line of the report says of a
test how it ended, and of each request that was refused how, and how many calls the store's log has from meanwhile.
"""

import inspect
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import botocore.client
import pytest
import s3tests.functional as suite
import urllib3

BUCKET = os.environ["BUCKET_NAME"]
ENDPOINT = os.environ["AWS_ENDPOINT_URL_S3"]
REPORT = Path(os.environ["S3_TESTS_REPORT"])
# The store's access log: one line for each request that it answered.
STORE = Path(os.environ["STORE_LOG"])
# Requests of operator and harness are none of the gateway's; theirs alone name this.
NOT_THE_GATEWAY = b"aws-sdk-rust"
# How S3, and the gateway, refuse: by a word about the request, about rights, about a method, or about what there is.
REFUSALS = {400, 403, 405, 501}

USERS = ["main", "alt", "tenant", "iam", "iam_root", "iam_alt_root"]


class Test:
    """What is known of the test that is played."""

    def __init__(self, makes_buckets, is_about_heads):
        self.makes_buckets = makes_buckets
        self.is_about_heads = is_about_heads
        self.named = 0
        self.refused = []
        self.operation = None


test = Test(False, False)


def configure():
    at, config = urlsplit(ENDPOINT), suite.config
    config.default_host, config.default_port = at.hostname, at.port
    config.default_is_secure, config.default_endpoint = at.scheme == "https", ENDPOINT
    config.default_ssl_verify = os.environ.get("AWS_CA_BUNDLE", False)
    config.main_kms_keyid, config.main_kms_keyid2 = "key-1", "key-2"
    config.main_api_name, config.storage_classes, config.cloud_storage_class = "", "", None
    config.tenant_name, config.lc_debug_interval = "tenant", 1
    config.iam_name_prefix, config.iam_path_prefix = "s3-tests-", "/s3-tests/"
    keys = {
        "main": (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]),
        "alt": (os.environ["OTHER_ACCESS_KEY_ID"], os.environ["OTHER_SECRET_ACCESS_KEY"]),
    }
    for user in USERS:
        key, secret = keys.get(user, ("AKIANOBODYS" + user.upper().replace("_", ""), "x" * 40))
        setattr(config, user + "_access_key", key)
        setattr(config, user + "_secret_key", secret)
        for field in ["display_name", "user_id"]:
            setattr(config, f"{user}_{field}", user)
        setattr(config, user + "_email", user + "@example.com")
    suite.prefix = "s3-tests-"


def new_bucket_name():
    """The claim's bucket for the first that a test makes; else the name of none that is there."""
    test.named += 1
    return BUCKET if test.makes_buckets and test.named == 1 else f"{BUCKET}-none-{test.named}"


def new_bucket(client=None, name=None):
    name = name or suite.get_new_bucket_name()
    if name != BUCKET:
        (client or suite.get_client()).create_bucket(Bucket=name)
    return name


call_api = botocore.client.BaseClient._make_api_call


def call(self, operation, arguments):
    is_the_tenant = self._request_signer._credentials.access_key == suite.config.main_access_key
    if operation == "CreateBucket" and arguments == {"Bucket": BUCKET} and is_the_tenant and not test.is_about_heads:
        headers = {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RequestId": "", "RetryAttempts": 0}
        return {"ResponseMetadata": headers, "Location": "/" + BUCKET}
    test.operation = operation
    try:
        return call_api(self, operation, arguments)
    finally:
        test.operation = None


send = urllib3.HTTPConnectionPool.urlopen


def urlopen(self, method, url, *arguments, **named):
    began = STORE.stat().st_size
    answer = send(self, method, url, *arguments, **named)
    if answer.status in REFUSALS:
        with STORE.open("rb") as log:
            log.seek(began)
            calls = sum(1 for line in log if NOT_THE_GATEWAY not in line)
        test.refused.append({"request": test.operation or method, "status": answer.status, "calls": calls})
    return answer


def empty():
    client = suite.get_client()
    while found := client.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        for it in found:
            client.delete_object(Bucket=BUCKET, Key=it["Key"])
    for it in client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
        client.abort_multipart_upload(Bucket=BUCKET, Key=it["Key"], UploadId=it["UploadId"])


botocore.client.BaseClient._make_api_call = call
urllib3.HTTPConnectionPool.urlopen = urlopen
configure()
suite.configure = configure
suite.get_new_bucket_name = new_bucket_name
suite.get_new_bucket = new_bucket
suite.setup = empty
suite.teardown = lambda: None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    global test
    # A test that asks for a name and makes no bucket means one that isn't there.
    source = inspect.getsource(item.function).replace(item.originalname, "")
    makes = any(word in source for word in ["create", "get_new_bucket(", "get_new_bucket_resource("])
    # One that changes the head of a request that would make a bucket means that request.
    test = Test(makes or "get_new_bucket_name()" not in source, item.path.name == "test_headers.py")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    result = (yield).get_result()
    if result.when != "call" and result.outcome == "passed":
        return
    crash = getattr(result.longrepr, "reprcrash", None)
    why = crash.message if crash else str(result.longrepr or "")
    line = {
        "test": f"{item.path.name}::{item.name}",
        "outcome": result.outcome,
        "why": " ".join(why.split())[:300],
        "refused": test.refused,
    }
    with REPORT.open("a") as report:
        report.write(json.dumps(line) + "\n")
