import base64
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.errors import InvalidInput
from memoryd.domain.redact import RULES, Redactor, redactor_from
from memoryd.domain.rule import Rule
from tests.unit import planted

REDACTOR = Redactor()
SEED = 20261118


@pytest.mark.parametrize(("rule", "template"), planted.ALL)
def test_a_secret_is_replaced_under_its_name(rule: str, template: str) -> None:
    """Every kind of secret is replaced by its rule's mark, and the rest of the text stays."""
    rng = random.Random(SEED)
    for _ in range(20):
        made = planted.plant(rule, template, rng)
        clean, counts = REDACTOR.redact(f"before {made.text} after")
        assert made.secret not in clean
        assert counts == {rule: 1}, made.text
        marked = made.text.replace(made.secret, f"[redacted:{rule}]")
        assert clean == f"before {marked} after"


def test_every_rule_is_tried() -> None:
    """The tables of this test leave no rule out, and there are at least 60."""
    tried = {rule for rule, _ in planted.ALL} | {"basic-auth", "docker-auth"}
    assert {rule.id for rule in RULES} == tried
    assert len(tried) >= 60


@pytest.mark.parametrize("template", [t for _, t in planted.SHAPES])
def test_a_beginning_alone_is_no_secret(template: str) -> None:
    """A prefix with a stub behind it, or with a mask, is left alone."""
    for text in (planted.too_short(template), planted.masked(template)):
        assert REDACTOR.redact(f"see {text} here").counts == {}


def test_basic_credentials_are_decoded() -> None:
    """Base64 behind Basic is a secret if it holds a user and a password."""
    secret = base64.b64encode(b"app:" + bytes(random.Random(SEED).choices(b"abc", k=9))).decode()
    assert REDACTOR.redact(f"Authorization: Basic {secret}").text.endswith("[redacted:basic-auth]")
    config = json.dumps({"auths": {"acme.io": {"auth": secret}}})
    assert REDACTOR.redact(config).counts == {"docker-auth": 1}
    assert REDACTOR.redact("Basic understanding of Basic authentication").counts == {}


ORDINARY = [
    "token = next_token",
    "tokens: 128000, max_tokens=4096, input_tokens: 17",
    'token: "string"',
    "password: str = Field(min_length=8)",
    'password = os.environ["DB_PASSWORD"]',
    "password=self.password2, token=token1",
    "DB_PASSWORD=${DB_PASSWORD}",
    "api_key: <your-api-key>",
    'apiKey: process.env.OPENAI_API_KEY ?? ""',
    'api_key="xxxxxxxxxxxxxxxxxxxxxxxx"',
    "secret_key = generate_secret_key_from_user_input(user2)",
    "client_secret: env.AUTH0_CLIENT_SECRET,",
    'if token == "access-token-expired-v2":',
    "private_key: ed25519.Ed25519PrivateKey",
    "primary_key = account_id_2",
    'cacheKey: "user-profile-v2-settings"',
    '"password": "must be at least 8 characters"',
    "the password is required, the token is invalid",
    "passwordless login, tokenizer=cl100k_base",
    "https://github.com/acme/app/blob/main/a.py#L10",
    "git@github.com:acme/app.git",
    "http://localhost:8080/@vite/client",
    'url = f"postgres://{user}:{password}@{host}/db"',
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "0189dfb2-4a5e-7f60-8b1c-2d3e4f5a6b7c",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwv"',
    "    --hash=sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "model: claude-3-5-sonnet-20241022, id msg_01XFDUDYJgAACzvnptvVoYEL",
    "toolu_01A09q90qw90lq917835lq9 call_9pw1qnYScqvGrCH58HWCvFH6",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    'if text.startswith("-----BEGIN RSA PRIVATE KEY-----"): raise Refused(name)',
    "task-management disk-usage risk-assessment ask-for-help-when-you-need-it-please",
    "class HTTPBasicAuthHandler(AbstractBasicAuthHandler, BaseHandler):",
    "curl -sSL https://acme.io/install.sh | bash -s -- --user bob",
    "mysql -u root -p app; docker run -p 8080:80 nginx",
    "ssh -p 2222 root@box; cp -pr a b",
    "<privateKey>none</privateKey> private: true",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Names, references, hashes, ids and stand-ins are no secrets."""
    assert REDACTOR.redact(text).counts == {}
    assert REDACTOR.redact_value({"text": text, text: 1}).counts == {}


def _surroundings(text: str, rng: random.Random) -> str:
    words = " ".join(rng.choices(("the", "build", "fails", "on", "main", "since", "that"), k=9))
    return rng.choice(
        (
            f"{words}. I use {text} for it, {words}.",
            f"def run():\n    client = make('x')  # {text}\n    return client  # {words}\n",
            json.dumps({"type": "result", "content": f"{words}\n{text}\n{words}"}),
            json.dumps({"line": json.dumps({"out": f"{words} {text}"})}),
            f"$ cat .env\nREGION=eu\n{text}\n$ echo {words}\n{words}\n",
        )
    )


def test_recall_of_1000_planted_secrets() -> None:
    """Of 1,000 secrets of all kinds, in prose, code, JSON and shell output, 99% are found."""
    rng = random.Random(SEED)
    kinds = set()
    missed = []
    for number in range(1000):
        rule, template = planted.ALL[number % len(planted.ALL)]
        made = planted.plant(rule, template, rng)
        text = _surroundings(made.text, rng)
        written = json.dumps(made.secret)[1:-1]
        clean = REDACTOR.redact(text).text
        kinds.add(rule)
        if made.secret in clean or written in clean or json.dumps(written)[1:-1] in clean:
            missed.append((rule, made.text))
    assert len(kinds) >= 40
    assert len(missed) <= 10, missed


def test_private_text_is_never_kept() -> None:
    """What stands between private tags goes, also over lines, nested, or to an end left open."""
    cases = {
        "a <private>b\nc</private> d": "a [redacted:private] d",
        "a <PRIVATE>b</Private> <private>c</private>": "a [redacted:private] [redacted:private]",
        "a <private>b <private>c</private> d</private> e": "a [redacted:private] e",
        "a <private reason='x'>b": "a [redacted:private]",
        "a </private> b": "a </private> b",
        "<private>password = 'hunter2hunter2'</private>": "[redacted:private]",
    }
    for text, clean in cases.items():
        assert REDACTOR.redact(text).text == clean


def test_an_open_key_block_goes_as_far_as_it_reaches() -> None:
    """A private key that is cut off is replaced up to its cut; its line breaks may be escaped."""
    rng = random.Random(SEED)
    body = ["".join(rng.choices(planted.ALPHABETS["b"], k=64)) for _ in range(3)]
    head = "-----BEGIN PRIVATE KEY-----"
    for gap in ("\n", "\\n", "\\\\n", "\r\n"):
        whole = gap.join((head, *body, "-----END PRIVATE KEY-----"))
        assert REDACTOR.redact(f"k: {whole} z").text == "k: [redacted:private-key] z"
        cut = gap.join((head, *body))
        assert REDACTOR.redact(f"k: {cut}, z").text == "k: [redacted:private-key], z"


def test_a_url_keeps_all_but_its_password() -> None:
    """Scheme, user and host of a URL stay readable."""
    clean = REDACTOR.redact("at amqps://bob:hunter2@mq.acme.io:5671/v?x=1 now").text
    assert clean == "at amqps://bob:[redacted:url-password]@mq.acme.io:5671/v?x=1 now"


def test_values_are_walked() -> None:
    """Texts in dicts and lists are redacted, keys too, and a key says what its text is."""
    rng = random.Random(SEED)
    token = planted.plant("github-token", "ghp_{a36}", rng).text
    other = planted.plant("github-token", "ghp_{a36}", rng).text
    value = {
        "headers": [{"x": token}, ["n", 1, None, True, 2.5]],
        "password": "hunter2hunter",
        token: "first",
        other: "second",
        "API_KEY": planted.plant("", "{a32}", rng).text,
        7: "seven",
    }
    clean, counts = REDACTOR.redact_value(value)
    mark = "[redacted:github-token]"
    assert clean == {
        "headers": [{"x": mark}, ["n", 1, None, True, 2.5]],
        "password": "[redacted:password]",
        mark: "first",
        f"{mark}'": "second",
        "API_KEY": "[redacted:api-key]",
        7: "seven",
    }
    assert counts == {"github-token": 3, "password": 1, "api-key": 1}
    assert REDACTOR.redact_value(clean) == (clean, {})


def test_a_name_in_quotes_says_what_its_text_is() -> None:
    """A flat value is judged as a nested one is, also by rules that want quotes around a name."""
    secret = base64.b64encode(b"app:hunter2hunter2").decode()
    assert REDACTOR.redact_value({"auth": secret}).counts == {"docker-auth": 1}
    assert REDACTOR.redact_value({"auth": secret, "more": {}}).counts == {"docker-auth": 1}


def test_a_value_nested_too_deeply_is_refused() -> None:
    """Nesting without end is bad input, not a crash."""
    value: object = "x"
    for _ in range(5000):
        value = [value]
    with pytest.raises(InvalidInput, match="nested deeper than 200"):
        REDACTOR.redact_value(value)


def test_characters_stay_whole() -> None:
    """A secret beside characters of several bytes, or lone surrogates, is cut out cleanly."""
    text = "é password = 'gehéim7€x' €\ud800"
    assert REDACTOR.redact(text).text == "é password = '[redacted:password]' €\ud800"


FRAGMENTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["\n", " ", '"', "'", "\\", "=", ": ", "://", "@", "[redacted:x]", "<private>"]
    ),
    st.sampled_from(sorted({k.decode() for rule in RULES for k in rule.keywords})),
    st.builds(
        lambda kind, seed: planted.plant(kind[0], kind[1], random.Random(seed)).text,
        st.sampled_from(planted.ALL),
        st.integers(0, 2**32),
    ),
)
TEXTS = st.lists(FRAGMENTS, max_size=8).map("".join)


@settings(max_examples=250, deadline=None)
@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """A redacted text has nothing left to redact."""
    clean = REDACTOR.redact(text).text
    assert REDACTOR.redact(clean) == (clean, {})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_text_takes_for_ever(rule: Rule) -> None:
    """Keywords by the thousand, and what patterns repeat on, end in finite time."""
    word = rule.keywords[0].decode()
    for filler in ("", "A1", '="', " ", "\\n"):
        REDACTOR.redact((word + filler) * 1500)
    for filler in ("a1B2", "-", " ", "=", "://a:"):
        REDACTOR.redact(word + filler * 8000)


def test_a_user_adds_rules_and_exceptions() -> None:
    """Own rules are found before the built-in ones; what is allowed stays."""
    redactor = redactor_from(
        {
            "rules": [
                {"id": "ticket", "pattern": r"ACME-(\d{4})", "keywords": ["acme-"]},
                {"id": "badge", "pattern": r"(id) (\w{8})", "group": 2, "entropy": 2.5},
            ],
            "allow": [r"^hunter2$"],
        }
    )
    clean = redactor.redact("ACME-1234, id a1b2c3d4, id aaaaaaaa, mq://b:hunter2@h mq://b:x2@h")
    assert clean.text == (
        "ACME-[redacted:ticket], id [redacted:badge], id aaaaaaaa, "
        "mq://b:hunter2@h mq://b:[redacted:url-password]@h"
    )
    assert clean.counts == {"ticket": 1, "badge": 1, "url-password": 1}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"rule": []}, "'rule' is not known"),
        ({"rules": {}}, "rules must be a list"),
        ({"rules": [1]}, "must be a table"),
        ({"rules": [{"id": "x", "patern": "y"}]}, "'patern' is not known"),
        ({"rules": [{"id": "A b", "pattern": "y"}]}, "rule id 'A b'"),
        ({"rules": [{"pattern": "y"}]}, "rule id None"),
        ({"rules": [{"id": "x"}]}, "rule x: pattern must be"),
        ({"rules": [{"id": "x", "pattern": "("}]}, "rule x: pattern does not compile"),
        ({"rules": [{"id": "x", "pattern": "é"}]}, "rule x: pattern must be ASCII"),
        ({"rules": [{"id": "x", "pattern": "a*"}]}, "rule x: pattern matches the empty"),
        ({"rules": [{"id": "x", "pattern": "a", "keywords": "a"}]}, "rule x: keywords"),
        ({"rules": [{"id": "x", "pattern": "a", "entropy": 9}]}, "rule x: entropy"),
        ({"rules": [{"id": "x", "pattern": "a", "group": 1}]}, "rule x: group"),
        ({"allow": "x"}, "allow must be a list"),
        ({"allow": ["ok", "["]}, r"allow\[1\] does not compile"),
    ],
)
def test_a_bad_rule_is_refused_by_its_field(config: dict[str, object], message: str) -> None:
    """What cannot be used is named, and nothing is left out silently."""
    with pytest.raises(InvalidInput, match=message):
        redactor_from(config)


@given(st.lists(st.sampled_from(planted.ALL) | st.text(max_size=40), max_size=200), st.randoms())
@settings(max_examples=50)
def test_one_look_finds_every_text_with_a_secret(
    made: list[tuple[str, str] | str], rng: random.Random
) -> None:
    """A look at many texts together passes over none that would be changed."""
    texts = [m if isinstance(m, str) else planted.plant(*m, rng).text for m in made]
    suspects = REDACTOR.suspects(texts)
    assert {n for n, text in enumerate(texts) if REDACTOR.redact(text).counts} <= set(suspects)


def test_one_look_passes_over_plain_texts() -> None:
    """A text between two with secrets is not suspect; with a rule for any text, all are."""
    secret = planted.plant(*planted.ALL[0], random.Random(SEED)).text
    texts = ["plain", secret, "", "plain"] * 50
    assert set(REDACTOR.suspects(texts)) == set(range(1, 200, 4))
    own = Redactor([Rule("own", rb"\bINTERNAL-\d+", ())])
    assert set(own.suspects(["plain", "plain"])) == {0, 1}
