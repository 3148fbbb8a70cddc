"""Digests and codes of text."""

import hashlib

import pytest

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.limits import EvaluationContext


def call(name, *operands, **context):
    return BUILTINS[name].function(EvaluationContext(**context), *operands)


def test_digests_are_those_of_the_utf8_bytes_in_hexadecimal():
    assert call("crypto.sha256", "é") == hashlib.sha256("é".encode()).hexdigest()
    assert call("crypto.md5", "") == "d41d8cd98f00b204e9800998ecf8427e"
    assert call("crypto.sha1", "abc") == "a9993e364706816aba3e25717850c26c9cd0d89d"


def test_hmac_takes_the_message_before_the_key():
    # RFC 4231, test case 2.
    expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert call("crypto.hmac.sha256", "what do ya want for nothing?", "Jefe") == expected
    assert call("crypto.hmac.equal", expected, expected)
    assert not call("crypto.hmac.equal", expected, "")


def test_a_number_is_no_text_to_digest():
    with pytest.raises(BuiltinError, match="operand 1 must be string but got number"):
        call("crypto.sha256", 1)


def test_digesting_a_long_text_is_paid_for():
    with pytest.raises(EvaluationError):
        call("crypto.sha256", "x" * 1_000_000, steps=1_000)
