r"""Secrets that are known by what stands around them: a name, a header, a URL, a block. Pure.

A pattern begins at its keyword and reads on to the value; how far is limited everywhere. Where
the name says little, `plausible` judges the value.
"""

import re
from typing import Final

from memoryd.domain.plausible import credentials, key_like, named, password_like
from memoryd.domain.rule import Rule

_QUOTE: Final = rb"\\{0,15}[\"'`]"
# the rest of the name, perhaps a closing quote or bracket; then what joins name and value
_REST: Final = rb"[A-Za-z0-9_.-]{0,40}+(?:" + _QUOTE + rb")?\]?"
_JOIN: Final = (
    rb"[ \t]{0,8}(?::[ \t]{0,2}&?[A-Za-z][\w .|\[\]?&']{0,30}?[ \t]{0,3}=|:=|=>|={1,3}|:(?!:)"
    rb"|[ \t](?:is|was)(?:[ \t]now)?:?[ \t])[ \t]{0,8}"
)
# quotes of the text itself may hold escapes; escaped quotes, as in JSON within JSON, may not
_QUOTED: Final = (
    rb"[A-Za-z]?(?:(?P<q>[\"'`])(?P<quoted>(?:(?!(?P=q))(?:[^\s\\]|\\[^\s\"'`])){6,2000}+)(?:(?P=q)|\Z)"
    rb"|\\{1,15}[\"'`](?P<escaped>[^\s\"'`\\]{6,2000}+)(?=\\|\Z))"
)
_PLAIN: Final = rb"[^\s\"'`\\<>(){}\[\],;&|]"
_BARE: Final = (
    rb"(?P<bare>"
    + _PLAIN
    + rb"{2,500}+(?:[;&](?![\w.-]{1,40}=|\s|\Z)"
    + _PLAIN
    + rb"{0,500}+){0,3}+)"
    rb"(?![(\[{])"
)
# a call or a list holds only quoted values: `token("...")`, `("password", "...")`
_IN_CALL: Final = rb"[A-Za-z0-9_-]{0,40}+(?:\([ \t]{0,2}|" + _QUOTE + rb",[ \t]{0,4})"
_IN_TAG: Final = rb"[A-Za-z0-9_.-]{0,40}+>(?P<inner>[^\s<>]{6,300}+)</"


def _assigned(names: bytes) -> bytes:
    """Any of the names with a value behind it."""
    return rb"(?i:%s)(?:%s|%s|%s)" % (
        names,
        rb"(?:%s%s|%s)%s" % (_REST, _JOIN, _IN_CALL, _QUOTED),
        _REST + _JOIN + _BARE,
        _IN_TAG,
    )


_UUID: Final = rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_EDGE: Final = rb"(?![A-Za-z0-9])"
_SHORTEST_KEY, _SHORTEST_PASSWORD = 12, 6


def _value(match: "re.Match[bytes]") -> tuple[bytes, bool]:
    """The secret of an assignment, and whether it stands bare, without quotes or tags."""
    quoted = match["quoted"] or match["escaped"] or match["inner"]
    return (quoted, False) if quoted else (match["bare"], True)


def _is_password(match: "re.Match[bytes]") -> bool:
    value, bare = _value(match)
    return len(value) >= _SHORTEST_PASSWORD and password_like(value, bare=bare)


def _is_key(match: "re.Match[bytes]") -> bool:
    value, bare = _value(match)
    return len(value) >= _SHORTEST_KEY and key_like(value) and not (bare and named(value))


def _is_passed(match: "re.Match[bytes]") -> bool:
    return password_like(match[1])


def _is_token(match: "re.Match[bytes]") -> bool:
    return key_like(match[1])


def _is_credentials(match: "re.Match[bytes]") -> bool:
    return credentials(match[1])


_TEMPLATE: Final = re.compile(rb"[$%{<\[*]|\.\.\.|x+$|(?i:\[?redacted)")


def _is_literal(match: "re.Match[bytes]") -> bool:
    return not _TEMPLATE.match(match[1])


def _named(rule_id: str, value: bytes, *services: bytes, bits: float = 3.0) -> Rule:
    """A secret without a shape of its own, after the name of the service that issued it."""
    pattern = (
        rb"(?i:"
        + rb"|".join(services)
        + rb")[A-Za-z0-9_.( -]{0,40}?(?:"
        + _QUOTE
        + rb")?\]?(?:"
        + _JOIN
        + rb"|,[ \t]{0,4})(?:[A-Za-z]?"
        + _QUOTE
        + rb")?("
        + value
        + rb")"
        + _EDGE
    )
    return Rule(rule_id, pattern, services, bits)


_PASSWORD_NAMES: Final = (
    b"passw",
    b"passphrase",
    b"pwd",
    b"userpass",
    b"dbpass",
    b"pass:",
    b"pass=",
    b'pass"',
    b"pass'",
    b"pass ",
)
_KEY_NAMES: Final = (
    *(
        b"token",
        b"secret",
        b"credential",
        b"auth_key",
        b"authkey",
        b"auth-key",
        b"app_key",
        b"appkey",
        b"app-key",
    ),
    *(b"api_key", b"api-key", b"apikey", b"api key", b"access_key", b"access-key", b"accesskey"),
    *(b"private_key", b"private-key", b"privatekey", b"signing_key", b"signing-key", b"signingkey"),
    *(b"encryption_key", b"encryption-key", b"encryptionkey", b"master_key", b"masterkey"),
    *(b"service_key", b"account_key", b"accountkey", b"sharedaccesskey", b"subscription_key"),
    *(b"subscription-key", b"jwt_key", b"session_key", b"license_key", b"_auth"),
)
_FLAGS: Final = (
    *(b"--password", b"--passwd", b"--pass", b"--passphrase", b"--pwd"),
    *(b"--token", b"--auth-token", b"--access-token", b"--api-token", b"--bearer"),
    *(b"--secret", b"--client-secret", b"--api-key", b"--apikey", b"--api_key"),
    *(b"--secret-key", b"--access-key", b"--secret-access-key", b"--auth", b"--key"),
)
_PRIVATE_KEY: Final = (
    rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:"
    rb"(?=(?:[^-]|-(?!----)){0,400}?[A-Za-z0-9+/=]{24})"
    rb"(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]{1,60}-----"
    rb"|(?:(?:\\{1,4}[nr]|[\s\"'+,\\])*+[A-Za-z0-9+/=]{16,}+)++"
    rb"(?:(?:\\{1,4}n|\n)[A-Za-z0-9+/=]{1,15})?)"
)

CONTEXTS: Final[tuple[Rule, ...]] = (
    Rule("private-key", _PRIVATE_KEY, (b"-----begin ",)),
    Rule(
        "url-password",
        rb":\\?/\\?/[^\s/:@\"'`<>\\]{0,200}:([^\s/@\"'`<>\\]{1,300}+)@[\w.\[-]",
        (b"://", rb":\/\/"),
        check=_is_literal,
    ),
    Rule(
        "url-token",
        rb":\\?/\\?/([\w.~-]{16,300}+)@[\w.\[-]",
        (b"://", rb":\/\/"),
        check=_is_token,
    ),
    Rule(
        "basic-auth",
        rb"(?i:basic)(?:[ \t]|%20){1,4}" + rb"(?:" + _QUOTE + rb")?([A-Za-z0-9+/]{6,600}={0,2})",
        (b"basic ", b"basic\t", b"basic%20"),
        check=_is_credentials,
    ),
    Rule(
        "bearer-token",
        rb"(?i:bearer)(?:[ \t]|%20|:){1,4}(?:" + _QUOTE + rb")?([\w.~+/=-]{12,4000})",
        (b"bearer ", b"bearer\t", b"bearer%20", b"bearer:"),
        check=_is_token,
    ),
    Rule(
        "authorization-header",
        rb"(?i:authorization)(?:" + _QUOTE + rb")?[ \t]{0,4}[:=,][ \t]{0,4}(?:" + _QUOTE + rb")?"
        rb"(?:[A-Za-z][\w-]{1,20}[ \t]{1,4})?(?:[A-Za-z]{2,12}=)?([\w.~+/=:-]{12,4000})",
        (b"authorization",),
        check=_is_token,
    ),
    _named(
        "aws-secret-key",
        rb"[A-Za-z0-9/+=]{40}",
        *(b"secret_access_key", b"secretaccesskey", b"secret-access-key", b"secret access key"),
        *(b"aws_secret", b"awssecret", b"aws secret", b"aws-secret"),
        bits=3.5,
    ),
    _named(
        "aws-session-token",
        rb"[A-Za-z0-9/+=]{80,2000}",
        *(
            b"session_token",
            b"sessiontoken",
            b"session-token",
            b"security_token",
            b"security-token",
        ),
        bits=4.0,
    ),
    Rule("aws-signature", rb"(?i)x-amz-signature=([0-9a-f]{64})", (b"x-amz-signature=",)),
    Rule("google-signature", rb"(?i)x-goog-signature=([0-9a-f]{128,})", (b"x-goog-signature=",)),
    Rule("azure-sas", rb"(?i)sig=([A-Za-z0-9%+/]{40,120}(?:%3D|=))", (b"sig=",), 3.5),
    Rule(
        "azure-storage-key", rb"(?i)AccountKey=([A-Za-z0-9+/]{80,}={0,2})", (b"accountkey=",), 3.5
    ),
    Rule(
        "azure-shared-key",
        rb"(?i)SharedAccessKey=([A-Za-z0-9+/]{40,}={0,2})",
        (b"sharedaccesskey=",),
    ),
    Rule(
        "docker-auth",
        rb"\"auth(?:"
        + _QUOTE
        + rb")[ \t]{0,4}:\s{0,4}"
        + _QUOTE
        + rb"([A-Za-z0-9+/]{8,600}={0,2})",
        (b'"auth',),
        check=_is_credentials,
    ),
    Rule(
        "gcp-private-key-id",
        rb"private_key_id(?:"
        + _QUOTE
        + rb")?[ \t]{0,4}:[ \t]{0,8}(?:"
        + _QUOTE
        + rb")?([0-9a-f]{40})",
        (b"private_key_id",),
        3.0,
    ),
    _named("cloudflare-token", rb"[\w-]{40}|[0-9a-f]{37}", b"cloudflare", b"cf_api", b"cf_token"),
    _named(
        "datadog-key", rb"[0-9a-f]{32}(?:[0-9a-f]{8})?", b"datadog", b"dd_api", b"dd_app", b"dd-api"
    ),
    _named("twilio-token", rb"[0-9a-f]{32}", b"twilio"),
    _named(
        "discord-token", rb"[\w-]{23,30}\.[\w-]{6}\.[\w-]{27,45}|[0-9a-f]{64}|[\w-]{32}", b"discord"
    ),
    _named("paypal-secret", rb"[A-Z][\w-]{60,90}", b"paypal"),
    _named("okta-token", rb"00[\w-]{40}", b"okta", b"ssws "),
    _named("heroku-key", _UUID, b"heroku"),
    _named("vercel-token", rb"[A-Za-z0-9]{24}", b"vercel"),
    _named("netlify-token", rb"[\w-]{40,46}", b"netlify"),
    _named("mailgun-key", rb"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}", b"mailgun"),
    _named("snyk-token", _UUID, b"snyk"),
    _named("codecov-token", _UUID + rb"|[0-9a-z]{32}", b"codecov"),
    _named("wandb-key", rb"[0-9a-f]{40}", b"wandb", b"weights_and_biases"),
    Rule(
        "curl-user",
        rb"curl[^\n\r|;]{0,300}?[ \t](?:-u|--user)(?:[ \t]|=)?[ \t]{0,2}(?:" + _QUOTE + rb")?"
        rb"[\w.@+-]{1,100}:([^\s\"'`\\:]{3,200})",
        (b"curl ",),
        check=_is_literal,
    ),
    Rule(
        "sshpass",
        rb"sshpass[ \t]{1,4}-p[ \t]{0,4}(?:" + _QUOTE + rb")?([^\s\"'`\\$]{3,200})",
        (b"sshpass ",),
    ),
    Rule(
        "mysql-password",
        rb"(?:mysql|mysqldump|mariadb|mysqladmin)[ \t][^\n\r|;]{0,200}?[ \t]-p([^\s\"'`\\$;|]{4,200})",
        (b"mysql ", b"mysqldump ", b"mariadb ", b"mysqladmin "),
        check=_is_literal,
    ),
    Rule(
        "docker-login",
        rb"(?:docker|podman|helm)[ \t][^\n\r|;]{0,200}?[ \t]-p[ \t]{1,3}(?:" + _QUOTE + rb")?"
        rb"([^\s\"'`\\$;|]{6,200})",
        (b"docker login", b"podman login", b"helm registry login"),
        check=_is_literal,
    ),
    Rule(
        "netrc-password",
        rb"login[ \t\n]{1,8}[^\s]{1,200}[ \t\n]{1,8}password[ \t\n]{1,8}([^\s\"']{3,200})",
        (b"login ", b"login\t", b"login\n"),
        check=_is_literal,
    ),
    Rule(
        "command-flag",
        rb"(?i:"
        + rb"|".join(_FLAGS)
        + rb")[ \t=]{1,4}(?:"
        + _QUOTE
        + rb")?([^\s\"'`\\<>]{6,1000}+)",
        _FLAGS,
        check=_is_passed,
    ),
    Rule(
        "password",
        _assigned(rb"passw(?:or)?ds?|passphrase|pwd|userpass|dbpass|(?<![A-Za-z])pass(?![A-Za-z])"),
        _PASSWORD_NAMES,
        check=_is_password,
    ),
    Rule("api-key", _assigned(rb"|".join(_KEY_NAMES)), _KEY_NAMES, check=_is_key),
)
