"""Signed AWS requests."""

import pytest

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.numbers import Numeral

CONFIG = {
    "aws_access_key": "AKIDEXAMPLE",
    "aws_secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "aws_region": "us-east-1",
    "aws_service": "iam",
}


def sign(request, config, time_ns=1_440_938_160_000_000_000):
    builtin = BUILTINS["providers.aws.sign_req"]
    return builtin.function(EvaluationContext(), request, config, time_ns)


def test_the_signature_is_that_of_amazons_worked_example():
    # AWS General Reference, "Signature Version 4: example".
    request = {
        "method": "GET",
        "url": "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        "headers": {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
    }
    headers = sign(request, CONFIG)["headers"]
    assert headers["x-amz-date"] == "20150830T123600Z"
    assert headers["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request,"
        "SignedHeaders=content-type;host;x-amz-date,"
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )


def test_s3_signs_the_digest_of_the_body_unless_it_must_not():
    request = {"method": "PUT", "url": "https://b.s3.amazonaws.com/k", "raw_body": "x"}
    config = CONFIG | {"aws_service": "s3"}
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert sign(request, config)["headers"]["x-amz-content-sha256"] == digest
    unsigned = sign(request, config | {"disable_payload_signing": True})
    assert unsigned["headers"]["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"aws_region": 1}, "invalid values for required AWS config parameters"),
        ({"disable_payload_signing": 1}, "invalid value for 'disable_payload_signing'"),
    ],
)
def test_a_configuration_with_a_fault_is_refused(change, message):
    with pytest.raises(BuiltinError, match=message):
        sign({"method": "GET", "url": "x"}, CONFIG | change)
    with pytest.raises(BuiltinError, match="missing required AWS config"):
        sign({"method": "GET", "url": "x"}, {})
    with pytest.raises(BuiltinError, match="could not convert time_ns"):
        sign({"method": "GET", "url": "x"}, CONFIG, 1.5)
    with pytest.raises(BuiltinError, match="could not convert time_ns"):
        sign({"method": "GET", "url": "x"}, CONFIG, Numeral("-1e9"))
