"""Condensing: a sentence as a line or as a headline, by leaving words out and never adding any. Pure."""

import re
from typing import Final

from memoryd.domain.extract.cues import OPENER
from memoryd.domain.extract.prose import shortened

BULLET_LIMIT: Final = 240
TITLE_LIMIT: Final = 80

_TELLING: Final = 12  # characters; with fewer, too little would remain
_SPACE: Final = re.compile(r"\s+")
_CONTROL: Final = re.compile(
    "\x1b\\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00-\x08\x0e-\x1f\x7f\u200b\ufeff]"
)
_TAG: Final = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]{0,80})?>")
_EMPHASIS: Final = re.compile(r"\*\*|__|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])")
_LINK: Final = re.compile(r"!?\[([^\]\n]{1,120})\]\((?:[^)\s]{1,300})\)")
_LINK_END: Final = re.compile(r"\]\([^)\s]*\)?")  # of a link whose beginning was cut away
_MARK: Final = re.compile(
    r"^(?:[#>|\-*+•–✓✔✗✘\s]|\d{1,2}[.)]\s)+(?=\S)|[\s|]+$|[\u2705\u274c\u26a0\ufe0f\u2728\U0001f300-\U0001faff]+\s*"
)
_ASIDE: Final = re.compile(r"\s*[(（][^()（）]{1,120}[)）]")
_POLITE: Final = re.compile(
    r"(?:(?:can|could|would|will) (?:you|we)(?: please)?(?: help me)?|please|i(?:'d| would) like(?: you)? to|i want(?: you)? to|i need(?: you)? to|we need to|we should|let'?s|i think(?: that)?(?: we should)?|"
    r"help me(?: to)?|go ahead and|i(?:'ve| have)(?: also| now| successfully)?|we(?:'ve| have)(?: also| now)?|i(?: also| just)?(?= [a-z]+ed\b)|bitte|kannst du|请|帮我|请帮我)\s*",
    re.IGNORECASE,
)
# what stands before the matter itself: a label, a filler
_LABEL: Final = re.compile(r"(?:[A-Z][\w-]*(?: [\w-]+){0,2}: )(?=[A-Za-z`]\S* \S+ \S)")
_FILLER: Final = re.compile(
    r"(?:as (?:you can see|mentioned|requested|discussed|expected)|since your [^,]{1,40}|to be clear|to summarize|in summary|overall|note that|it (?:looks|seems|appears)(?: like| that)|looks like"
    r"|this means(?: that)?|that means(?: that)?|the (?:good|bad) news is(?: that)?|now|then|also|additionally|finally|next)[,:]?[\"”]?\s+",
    re.IGNORECASE,
)
_PLEASE: Final = re.compile(r"[,\s]+(?:please|bitte|pls)?\s*\?$", re.IGNORECASE)
_PLAIN_WORD: Final = re.compile(r"[a-zà-ÿа-я]+(?:[ ,']|$)")
_TURN: Final = re.compile(
    r"\s*(?:[;；。！!?？]\s|\s[—–]\s|\s-\s|[:：]\s|,\s+(?:which|so|but|and|because|since|where|while|as|then|with|however|although|using)\b|，|、(?=.{12})"
    r"|\s(?:because|so that|since|which|in order to|when|while|but|although|whereas|weil|damit|sodass)\s)"
)
_LOOSE: Final = re.compile(
    r"(?:[\s,;:，；：、—–(\[{`\"'“‘*-]|\s(?:a|an|the|of|to|in|on|for|and|or|with|by|at|from|is|are|was|were|be|that|this|its|it|as|into|not|your|our|their|i|we|my|if|than|can|will|would|should|could|may|has|have|had|which|when|where|while|because|but|so|then|also|both|only|each|during|und|der|die|das|mit|für|von|zu|de|la|le|et))+$",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """The words of a statement without markup, openers and line breaks."""
    text = _SPACE.sub(" ", _CONTROL.sub("", text))
    if "<" in text:
        text = _TAG.sub("", text)
    if "](" in text:
        text = _LINK_END.sub("", _LINK.sub(r"\1", text))
    if "*" in text or "__" in text:
        text = _EMPHASIS.sub("", text)
    text = _MARK.sub("", text).strip()
    if opener := OPENER.match(text):
        text = text[opener.end() :].strip() or text
    return text


def _capital(text: str) -> str:
    """The text with a capital, unless it begins with a name that has none."""
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text


def line(text: str, limit: int = BULLET_LIMIT, *, case: bool = True) -> str:
    """A statement as one line of at most so many characters; ``case`` says it is a sentence."""
    text = _capital(plain(text)) if case else plain(text)
    if len(text) <= limit:
        return text
    without = _ASIDE.sub("", text)
    if len(without) <= limit:
        return without
    cut = shortened(without, limit - 1).rstrip(" ,;:，；：、—–(")
    return cut + "…"


def headline(text: str, limit: int = TITLE_LIMIT, *, spoken: bool = True) -> str:
    """A statement as a headline: its main clause, if that says enough; ``spoken``: a person's words."""
    text = _ASIDE.sub("", plain(text)).replace("`", "")
    for lead in (_LABEL, _FILLER) if spoken else ():
        found = lead.match(text)
        if found and len(text) - found.end() > _TELLING:
            text = text[found.end() :]
    if polite := _POLITE.match(text):
        rest = text[polite.end() :]
        text = rest if len(rest) > _TELLING else text
        text = _PLEASE.sub("", text) if rest == text else text
    text = text.rstrip(" .。!！:：;,，…")
    if len(text) > limit:
        text = _LOOSE.sub("", shortened(_main_clause(text, limit), limit))
    text = text.rstrip(" .。!！:：;,，")
    return _capital(text)


def _main_clause(text: str, limit: int) -> str:
    """The text up to its last turn within the limit, or up to the first that leaves enough."""
    best = text
    for turn in _TURN.finditer(text):
        if turn.start() >= limit // 3:
            if turn.start() > limit:
                break
            best = text[: turn.start()]
            if len(best) >= limit // 2:
                break
    return best


def sentence(text: str) -> str:
    """A line as a sentence of a paragraph: it ends with a mark."""
    text = text.rstrip(" ,;:，；：、—–-")
    return text if text.endswith((".", "!", "?", "。", "！", "？", "…")) else text + "."
