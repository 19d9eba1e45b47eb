"""Tests that text that looks like a secret is hidden, in time linear in the length of the text."""

import pytest

from handrail.ops.secrets import hide_secrets, may_hold_secret

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
RUN = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
BLOCK = "-----BEGIN {0}PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n{0}==\n-----END {0}PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"a ghp_{RUN} b", "a [hidden] b"),
        (f"ghr_{RUN}", "[hidden]"),
        (f"github_pat_{RUN}", "[hidden]"),
        (f"glpat-{RUN}", "[hidden]"),
        (f"sk-proj-{RUN}", "[hidden]"),
        (f"sk_live_{RUN}", "[hidden]"),
        ("xoxb-1234567890-abcdef", "[hidden]"),
        ("xoxp-1234567890-abcdef", "[hidden]"),
        (f"npm_{RUN}", "[hidden]"),
        (f"pypi-{RUN}", "[hidden]"),
        (f"hf_{RUN}", "[hidden]"),
        ("AKIAIOSFODNN7EXAMPLE ASIAIOSFODNN7EXAMPLE", "[hidden] [hidden]"),
        (f"AIza{RUN}", "[hidden]"),
        (f"see {JWT}, please", "see [hidden], please"),
        (f"x-{JWT}", "x-[hidden]"),
        (JWT[:40], "[hidden]"),
        (f"one\n{BLOCK.format('')}\ntwo", "one\n[hidden]\ntwo"),
        (BLOCK.format("OPENSSH "), "[hidden]"),
        (BLOCK.format("RSA ")[:60], "[hidden]"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----", "[hidden]"),
        ("https://me:hunter2@example.org/x", "https://me:[hidden]@example.org/x"),
        ("redis://:hunter2@cache:6379", "redis://:[hidden]@cache:6379"),
        ("Authorization: Bearer abcdefgh", "Authorization: Bearer [hidden]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [hidden]"),
        ("-H 'Proxy-Authorization: Basic dXNlcjpwYXNz' x", "-H 'Proxy-Authorization: Basic [hidden]' x"),
        (f"Bearer {RUN}", "Bearer [hidden]"),
        ("PASSWORD=hunter22 make", "PASSWORD=[hidden] make"),
        ("export MY_API_KEY='two words'", "export MY_API_KEY='[hidden]'"),
        ("aws_secret_access_key = abcdef1234", "aws_secret_access_key = [hidden]"),
        ("MYSQL_PWD=hunter22", "MYSQL_PWD=[hidden]"),
        ("https://example.org/?token=abcdefgh&page=2", "https://example.org/?token=[hidden]&page=2"),
        ('{"password": "two words", "a": 1}', '{"password": "[hidden]", "a": 1}'),
        (r'{"password": "quo\"ted word"}', '{"password": "[hidden]"}'),
        (r'"{\"client_secret\": \"hunter22\"}"', r'"{\"client_secret\": \"[hidden]\"}"'),
        ("secret:\n  hunter22", "secret:\n  [hidden]"),
        ("'passphrase' => 'hunter22'", "'passphrase' => '[hidden]'"),
    ],
)
def test_hide_secrets_hides_only_secret(text: str, kept: str) -> None:
    assert may_hold_secret(text)
    assert hide_secrets(text) == kept
    assert hide_secrets(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "plain words",
        "tokens: 12",
        "the key is under the mat",
        "PWD=/somewhere/else",
        '{"password": null}',
        "https://example.org:8080/a@b",
        "git@example.org:a/b.git",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0 ",
        "task-abcdefghijklmnopqrstuvwxyz",
    ],
)
def test_hide_secrets_ordinary_text_is_unchanged(text: str) -> None:
    assert hide_secrets(text) == text


SHAPES = (
    *(
        "A",
        "key=",
        "token",
        "token=",
        "token ",
        'token"',
        "token\\",
        "token\n",
        "password: '",
        "secret=>",
        "api_",
        "_pwd",
    ),
    *("eyJ", "eyJ.", "eyJaaaaaaaaaa-", "eyJaaaaaaaaaa.", "eyJaaaaaaaaaa.-", "eyJa ", "sk-", "sk-a ", "xoxb-", "ghp_"),
    *("AKIA", "-----BEGIN", "-----BEGIN PRIVATE KEY-----", "-----BEGIN RSA ", "PRIVATE KEY-----", "-----END "),
    *("://", "://a:", "a://b:c", "http://", "://a@", "bearer ", "authorization: basic ", "Bearer", " ", "\\", '"'),
)


@pytest.mark.parametrize("shape", SHAPES)
def test_hide_secrets_megabyte_run_is_decided(shape: str) -> None:
    """Search a megabyte: quadratic time would take minutes."""
    text = shape * (1_000_000 // len(shape))
    assert len(hide_secrets(f"private key :// token sk- akia eyj bearer {text}")) <= len(text) + 100
