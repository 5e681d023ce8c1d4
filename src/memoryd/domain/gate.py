r"""The gate before the redactor: tells whether bytes may hold anything that it would replace.

The hook asks on every call, before it writes, and loads the redactor only at a yes. So this
module imports nothing. A wrong yes costs milliseconds, a wrong no would put a secret on the
disk: everything here is a little wider than the redactor's rules, and a test holds the one
against the other, for plain text and for text as JSON.

Shapes are looked for in the long words alone, a small part of most payloads. Names such as
``token`` are common, so they count only with a value behind them.
"""

_LONG, _VERY_LONG = 15, 29  # bytes of the shortest secrets with a telling and a plain beginning

_SPACE = 32
_BYTES = bytes(range(256))
# letters, digits and what shapes may hold beside them; everything else separates words
_WORDS = bytes(
    b if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "_-.~+=$") else _SPACE for b in _BYTES
)
_SPACES = bytes(_SPACE if chr(b) in " \t\n\r\f\v" else b for b in _BYTES)
_HOSTS = bytes(_SPACE if b in b"\"'`<>/" else b for b in _SPACES)

# begin (or stand in) secrets that are long words; in their own case
_SHAPES = (
    *(
        b"sk-",
        b"k_live_",
        b"k_test_",
        b"k_prod_",
        b"sk.ey",
        b"eyJ",
        b"eyI",
        b"AIza",
        b"ya29.",
        b"GOCSPX-",
        b"AKIA",
    ),
    *(b"ASIA", b"ABIA", b"ACCA", b"LTAI", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"_pat_"),
    *(b"glpat-", b"glptt-", b"gldt-", b"glrt-", b"glrtr-", b"glcbt-", b"glft-", b"glimt-"),
    *(b"glagent-", b"gloas-", b"glsoat-", b"glffct-", b"glwt-", b"GR1348941", b"dckr_", b"xox"),
    *(b"xapp-", b"tskey-", b"NRAK-", b"NRII-", b"NRJS-", b"NRRA-", b"NRBR-", b"NRSP-", b"NRAL"),
    *(b"tvly-", b"sb_secret_", b"FLWSECK", b"hvs.", b"hvb.", b"hvr.", b"sq0", b"A3-", b"API-"),
    *(b"vcp_", b"vca_", b"vci_", b"vcr_", b"vck_"),
)
_LONG_SHAPES = (
    *(b"Q~", b"AZDO", b"JQQJ9", b"AzFu", b"AQVN", b"YC", b"_v1_", b"cfk_", b"cfut_", b"cfat_"),
    *(b"v1.0-", b"ATBB", b"npm_", b"pypi-", b"rubygems_", b"cio", b"oy2", b"CLOJARS_", b"AKCp"),
    *(b"cmVmdGtu", b"bkua_", b"bkaj_", b"bkct_", b"bkpt_", b"CCIP", b"squ_", b"sqp_", b"sqa_"),
    *(b"sgp_", b".atlasv1.", b"pul-", b"ico-", b"pnu_", b"pat.", b"sat.", b"sha256~", b"HRKU-"),
    *(b"fo1_", b"nfp_", b"nfc_", b"nfo_", b"nfu_", b"nfb_", b"sbp_", b"pscale_", b"napi_", b"rnd_"),
    *(b"dapi", b"dp.", b"glsa_", b"dt0", b"phx_", b"sdk-", b"api-", b"SK", b"SG.", b"key-", b"-us"),
    *(b"xkeysib-", b"xsmtpsib-", b"re_", b"shpat_", b"shpca_", b"shppa_", b"shpss_", b"EAA"),
    *(b"access_token$", b"shippo_", b"duffel_", b"EZAK", b"EZTK", b"access-", b"lin_", b"ntn_"),
    *(b"secret_", b"pat", b"PMAK-", b"figd_", b"figo_", b"figu_", b"figr_", b"CFPAT-", b"tfp_"),
    *(b"rdme_", b"sl.", b"aio_", b"hf_", b"api_org_", b"gsk_", b"xai-", b"pplx-", b"r8_"),
    *(b"sk_", b"nvapi-", b"pcsk_", b"lsv2_", b"fc-", b"jina_"),
)
# stand in secrets that a slash may cut into short words; in their own case
_CUT = (b"ABSK", b"eyJrIjoi", b"ops_eyJ", b"sntry", b"whsec_", b"glc_", b"TT3", b"fm1", b"fm2_")
# say enough by themselves, in lower case: parts of a word, and others
_SIGNS = (
    *(b"-----begin", b"-signature=", b"sig=", b"age-secret-key-1", b"sshpass"),
    *(b"hooks.slack.com", b"webhook.office.com", b"hooks.zapier.com", b"discord"),
)
# say enough with a long word near behind them: how near, and how long it is at least
_SERVICES = (
    *(b"cloudflare", b"cf_api", b"cf_token", b"datadog", b"dd_ap", b"dd-api", b"twilio", b"paypal"),
    *(b"okta", b"ssws", b"heroku", b"vercel", b"netlify", b"mailgun", b"snyk", b"codecov"),
    *(b"wandb", b"weights_and_biases"),
)
_NEAR_HEADER, _HEADER_VALUE = 256, 12
_BEARER_JOINS = (b" ", b"\t", b"\\t", b"%20", b":")
_NEAR_SERVICE, _SERVICE_VALUE = 320, 24
_VALUES = bytes(
    b if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "_-.~+/=:%\\") else _SPACE
    for b in _BYTES
)
_PHRASES = (
    *(b"<private", b'"auth"', b'"auth\\', b"1//0", b"1\\/\\/0"),
    *(b"basic ", b"basic\t", b"basic%20", b"basic\\t"),
)
_FLAGS = (
    *(b"pass", b"pwd", b"token", b"auth", b"access-", b"api", b"secret", b"client-secret", b"key"),
    b"bearer",
)
# say enough together
_PAIRS = (
    *((b"curl ", b"-u"), (b"login", b"password"), (b"docker login", b"-p")),
    *((b"podman login", b"-p"), (b"helm registry login", b"-p"), (b"mysql", b"-p")),
    (b"mariadb ", b"-p"),
)
# names before a value, and the length that the value has at least
_NAMES = (
    *((b"pass", 6), (b"pwd", 6), (b"token", 12), (b"secret", 12), (b"credential", 12)),
    *((b"_auth", 12), (b"key", 12)),
)
# a key counts only behind one of these, with or without a joint between them
_KEYED = (
    *(b"auth", b"app", b"api", b"access", b"private", b"signing", b"encryption", b"master"),
    *(b"service", b"account", b"subscription", b"jwt", b"session", b"license", b"security", b"aws"),
)
# before a name, or "access" behind it: words may follow before the value
_SPOKEN = (b"session", b"security", b"aws")
_SPOKEN_JOINS = (b"is ", b"is:", b"is\t", b"is\\t", b"was ", b"was:", b"was\t", b"was\\t")
_JOINS = (b":", b"=", b",", b"(", b">", b"\\t", *_SPOKEN_JOINS)
_NAME = b"abcdefghijklmnopqrstuvwxyz0123456789_.-"
_QUOTES = b"\"'`"
_ESCAPED = tuple(b"\\u00%d" % digit for digit in range(2, 8))


def suspicious(data: bytes) -> bool:
    """Whether the redactor has to look at ``data``, the raw bytes of a text or of JSON."""
    low = data.lower()
    return (
        any(phrase in low for phrase in _PHRASES)
        or _worded(data)
        or any([part.lstrip(b"-").startswith(_FLAGS) for part in low.split(b"--")[1:]])  # noqa: C419 - twice as fast as a generator
        or any(one in low and other in low for one, other in _PAIRS)
        or (b"\\u00" in data and any(escape in data for escape in _ESCAPED))
        or _with_user(data)
        or _bot_token(data)
        or _bearer(low)
        or _header(low)
        or any(_followed(low, sign, _NEAR_SERVICE, _SERVICE_VALUE) for sign in _SERVICES)
        or any(_named(low, name, size) for name, size in _NAMES)
    )


def _bearer(low: bytes) -> bool:
    """Whether a long word follows the word bearer at once."""
    place = low.find(b"bearer")
    while place >= 0:
        place += 6
        rest = low[place : place + _NEAR_HEADER]
        if rest.startswith(_BEARER_JOINS):
            rest = rest.replace(b"\\t", b" ").replace(b"%20", b" ").lstrip(b" \t:")
            word = rest.lstrip(b"\\\"'`").translate(_VALUES).partition(b" ")[0]
            if len(word) >= _HEADER_VALUE:
                return True
        place = low.find(b"bearer", place)
    return False


def _header(low: bytes) -> bool:
    """Whether the word authorization is joined to a value that is long enough."""
    place = low.find(b"authorization")
    while place >= 0:
        place += 13
        rest = low[place : place + _NEAR_HEADER].replace(b"\\t", b" ").lstrip(b"\\\"'` \t")
        if rest.startswith((b":", b"=", b",")):
            words = rest.translate(_VALUES).split()
            if any([len(word) >= _HEADER_VALUE for word in words]):  # noqa: C419 - faster
                return True
        place = low.find(b"authorization", place)
    return False


def _followed(low: bytes, sign: bytes, near: int, size: int) -> bool:
    """Whether a long word begins near behind a sign; escapes do not end it."""
    place = low.find(sign)
    while place >= 0:
        place += len(sign)
        if any([len(w) >= size for w in low[place : place + near].translate(_VALUES).split()]):  # noqa: C419 - faster
            return True
        place = low.find(sign, place)
    return False


def _worded(data: bytes) -> bool:
    """Whether a word holds a sign or has the shape of a secret; each word is looked at once."""
    words = set(data.translate(_WORDS).split())
    text = b" ".join(words)
    low = text.lower()
    long = [word for word in words if len(word) >= _LONG]
    text_of_long = b" ".join(long)
    longest = b" ".join([word for word in long if len(word) >= _VERY_LONG and not _is_uuid(word)])
    return (
        any(sign in low for sign in _SIGNS)
        or any(shape in text for shape in _CUT)
        or any(shape in text_of_long for shape in _SHAPES)
        or any(shape in longest for shape in _LONG_SHAPES)
    )


def _is_uuid(word: bytes) -> bool:
    """Whether a word is as long as a UUID and has its dashes; no shape does."""
    return len(word) == 36 and word[8:24:5] == b"----"  # noqa: PLR2004


def _with_user(data: bytes) -> bool:
    """Whether a URL has an @ before its first slash; the slashes may be escaped."""
    if b":\\" in data:
        data = data.replace(b"\\", b"")
    place = data.find(b"://")
    while place >= 0:
        place += 3
        if b"@" in data[place : place + 1600].translate(_HOSTS).partition(b" ")[0]:
            return True
        place = data.find(b"://", place)
    return False


def _bot_token(data: bytes) -> bool:
    """Whether digits, ``:A`` and a long word stand together."""
    place = data.find(b":A")
    while place >= 0:
        word = data[place + 1 : place + 36]
        if data[max(place - 7, 0) : place].isdigit() and b" " not in word.translate(_WORDS):
            return True
        place = data.find(b":A", place + 1)
    return False


def _named(low: bytes, name: bytes, size: int) -> bool:
    """Whether a value of that size follows the name anywhere."""
    place = low.find(name)
    while place >= 0:
        end = place + len(name)
        if name == b"key" and not low[max(place - 16, 0) : place].rstrip(b"_- ").endswith(_KEYED):
            place = low.find(name, end)
            continue
        near = low[end : end + 64].lstrip(_NAME)
        # most names are followed by a space and a plain word, and done with here
        if near[:1] != b" " or near.lstrip(b" \t").startswith(_JOINS):
            rest = low[end : end + 400]
            if _joined(rest, size):
                return True
            if b"\\t" in rest and _joined(rest.replace(b"\\t", b" "), size):
                return True
        if low[max(place - 9, 0) : place].rstrip(b"_- ").endswith(_SPOKEN):
            return True
        if low[end : end + 8].lstrip(b"_- ").startswith(b"access"):
            return True
        place = low.find(name, end)
    return False


def _joined(rest: bytes, size: int) -> bool:
    """Whether what follows a name joins it to a value."""
    rest = rest.lstrip(_NAME).lstrip(b"\\\"'`]").lstrip(b" \t")
    if not rest.startswith(_JOINS):
        return False
    if rest.startswith(_SPOKEN_JOINS) or _valued(rest, size):
        return True
    if rest.startswith(b">"):  # between tags, quotes end nothing
        return _SPACE not in rest[1 : 1 + size].translate(_SPACES)
    typed = rest.find(b"=", 1, 60)  # `token: str = "..."`
    return typed >= 0 and _valued(rest[typed:], size)


def _valued(rest: bytes, size: int) -> bool:
    """Whether a value begins here that is long enough and not cut by a space or its quote."""
    rest = rest.lstrip(b":=,(> \t")
    if rest[:1].isalpha() and rest[1:2] in (b'"', b"'", b"`", b"\\"):
        rest = rest[1:]
    value = rest.lstrip(b"\\")
    ends = _QUOTES
    if value.startswith((b'"', b"'", b"`")):
        ends, value = value[:1], value[1:]
    head = value[:size].translate(_SPACES)
    return len(head) == size and not any(byte in ends for byte in head) and _SPACE not in head
