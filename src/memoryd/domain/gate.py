"""The gate before the redactor: may these bytes hold anything that it would replace?

The hook asks this on every call before it writes, so that it loads the redactor only when there
is something to do. Imports nothing, for the same reason. A wrong yes costs milliseconds, a wrong
no would put a secret on the disk: so it says yes to every keyword of every rule, wherever it
stands, and a test holds it against the redactor.
"""

# in lower case; each of them is part of at least one keyword of the redactor's rules
_SIGNS = (
    b"<private",
    b"://",
    b"-----begin",
    b"passw",
    b"pwd",
    b"secret",
    b"token",
    b"key",
    b"auth",
    b"cred",
    b"sk-",
    b"sk_",
    b"rk_",
    b"gh",
    b"gl",
    b"xox",
    b"eyj",
    b"aiza",
    b"akia",
    b"asia",
    b"npm_",
    b"pypi-",
    b"hf_",
    b"sg.",
    b"bearer",
    b"basic",
)


def suspicious(data: bytes) -> bool:
    """Whether the redactor has to look at ``data``, raw bytes of text or JSON."""
    low = data.lower()
    return any(sign in low for sign in _SIGNS)
