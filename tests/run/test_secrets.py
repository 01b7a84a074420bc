"""Secrets are recognised by name and shape, and replaced even when written in pieces."""

from __future__ import annotations

import itertools

import pytest

from rlnb.run.secrets import Redactor, describe_secret, find_userinfo, is_secret_name, secret_values


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "client_secret", "DB_PASSWORD_FILE", "token"],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["seed", "total_tokens", "HOME", "KEYBOARD", "monkey", "AWS_REGION", "n_keys"]
)
def test_ordinary_names(name: str) -> None:
    assert not is_secret_name(name)


def test_secret_values_takes_named_values_and_userinfo_but_no_short_ones() -> None:
    found = secret_values(
        {
            "MY_TOKEN": "abcdefgh1",
            "OTHER_KEY": "short",
            "HTTPS_PROXY": "http://me:hunter2hunter2@proxy:3128",
            "HOME": "/home/someone",
        }
    )
    assert found == {"abcdefgh1": "MY_TOKEN", "hunter2hunter2": "HTTPS_PROXY"}


def test_userinfo() -> None:
    assert find_userinfo("s3://user:pa55word@host/bucket") == "pa55word"
    assert find_userinfo("https://host:443/path@1") is None


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("ghp_" + "a1B2" * 9, "a GitHub token"),
        ("AKIAIOSFODNN7EXAMPLE", "an AWS or OBS access key"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"[:39] + "1", "a secret access key"),
        ("https://u:secret99@h/x", "a URL with a password in it"),
    ],
)
def test_describe_secret_names_the_shape(value: str, what: str) -> None:
    assert describe_secret(value) == what


@pytest.mark.parametrize(
    "value", ["lander", "0.0003", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "runs/a/b"]
)
def test_describe_secret_leaves_ordinary_values_alone(value: str) -> None:
    assert describe_secret(value) is None


def test_redact_replaces_every_spelling() -> None:
    redactor = Redactor({'pa"ss/wörd1': "MY_PASSWORD"})
    assert redactor.redact('x pa"ss/wörd1 y') == "x [redacted] y"
    assert redactor.redact('{"a": "pa\\"ss/w\\u00f6rd1"}') == '{"a": "[redacted]"}'
    assert redactor.redact("?p=pa%22ss%2Fw%C3%B6rd1&q") == "?p=[redacted]&q"
    assert redactor.find('pa"ss/wörd1'.encode()) == "MY_PASSWORD"
    assert redactor.find("nothing") is None


def test_overlapping_secrets_leave_no_end_behind() -> None:
    redactor = Redactor(["AAAABBBB", "BBBBCCCC"])
    assert redactor.redact("<AAAABBBBCCCC>") == "<[redacted]>"


def test_redact_json_reaches_keys_and_nested_values() -> None:
    redactor = Redactor(["topsecret1"])
    assert redactor.redact_json({"topsecret1": ["a", {"b": "is topsecret1", "n": 1}]}) == {
        "[redacted]": ["a", {"b": "is [redacted]", "n": 1}]
    }


def test_stream_finds_a_secret_across_every_write_boundary() -> None:
    redactor = Redactor(["abcabcab", "abcabcabXYZ", "cabXYZ__!"])
    text = "start abcabcabXYZ__! middle abcabcab abcabca end abcab"
    expected = redactor.redact(text)
    assert "abcabcab" not in expected
    assert expected.count("[redacted]") == 2
    for one, two in itertools.combinations(range(len(text) + 1), 2):
        stream = redactor.stream()
        pieces = [
            stream.write(text[:one]),
            stream.write(text[one:two]),
            stream.write(text[two:]),
            stream.flush(),
        ]
        assert "".join(pieces) == expected


def test_stream_holds_back_no_more_than_it_must() -> None:
    stream = Redactor(["abcdefgh"]).stream()
    assert stream.write("hello\n") == "hello\n"
    assert stream.write("x abc") == "x "
    assert stream.write("d!") == "abcd!"
    assert stream.flush() == ""


def test_a_urls_password_is_redacted_wherever_it_comes_from() -> None:
    text = "go to postgres://me:hunter2@db/x, not http://h:80/a@b: or s3://key@bucket or x:y\n"
    expected = "go to postgres://me:[redacted]@db/x, not http://h:80/a@b: or s3://key@bucket or x:y\n"
    assert Redactor().redact(text) == expected
    for one, two in itertools.combinations(range(len(text) + 1), 2):
        stream = Redactor().stream()
        pieces = [
            stream.write(text[:one]),
            stream.write(text[one:two]),
            stream.write(text[two:]),
            stream.flush(),
        ]
        assert "".join(pieces) == expected
    for size in (1, 2, 3):
        stream = Redactor(["hunter2@db"]).stream()
        pieces = [stream.write(text[at : at + size]) for at in range(0, len(text), size)]
        assert "hunter" not in "".join([*pieces, stream.flush()])


def test_from_environ() -> None:
    redactor = Redactor.from_environ({"A_KEY": "12345678"}, extra=["87654321"])
    assert redactor.redact("12345678/87654321") == "[redacted]/[redacted]"
    assert repr(Redactor(["12345678"])) == "Redactor(1 secrets)"
