import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain import analyze

TABLE = {
    "running runs": "run run",
    "The cat and the dogs": "cat dog",
    "getUserName": "getusernam get user name",
    "get_user_name": "getusernam get user name",
    "get-user-name": "getusernam get user name",
    "GET_USER_NAME": "getusernam get user name",
    "HTTPServer": "httpserver http server",
    "parseJSON5": "parsejson5 pars json 5",
    "src/app/main.py": "srcappmainpi src app main py",
    "C:\\temp\\log.txt": "ctemplogtxt c temp log txt",
    "os.path.join": "ospathjoin os path join",
    "std::vec::Vec": "stdvecvec std vec vec",
    "TS2687": "ts2687 ts 2687",
    "E0308": "e0308 e 0308",
    "ECONNREFUSED": "econnrefus",
    "0x80070005": "0x80070005 0 x 80070005",
    "v1.20.3": "1.20.3 1.20",
    "3.11": "3.11",
    "3f2a91c0d4e5": "3f2a91c0d4e5 3f2a91c",
    "ebc91a2": "ebc91a2",
    "https://example.org/docs": "httpsexampleorgdoc https exampl org doc",
    "--no-verify": "noverifi verifi",
    "__init__": "init",
    "user@example.org": "userexampleorg user exampl org",
    "Café NAÏVE": "cafe naiv",
    "数据库": "数 据 库 数据 据库",
    "用Python写": "用 python 写",
    "ﬁle": "file",
    "don't": "",
    "Anna's": "anna",
    "Москва": "москва",
    "": "",
    "... --- ///": "",
}


@pytest.mark.parametrize("text", TABLE)
def test_texts_become_these_tokens(text: str) -> None:
    """Analysis is what the table says."""
    assert " ".join(analyze.tokens(text)) == TABLE[text]


@given(st.text(max_size=300))
def test_tokens_are_bounded_and_hold_no_space(text: str) -> None:
    """Any text gives short tokens that can be joined by spaces and split again."""
    found = analyze.tokens(text)
    assert all(0 < len(token) <= analyze.TOKEN_LIMIT for token in found)
    assert " ".join(found).split() == found


@given(st.text(max_size=200))
def test_spans_cover_what_tokens_find(text: str) -> None:
    """The places of compounds give the same tokens as the text itself."""
    found = list(analyze.spans(text))
    assert [token for _, _, tokens in found for token in tokens] == analyze.tokens(text)
    assert all(first < last <= len(text) for first, last, _ in found)


def test_sketches_of_like_texts_are_alike() -> None:
    """One word in forty changes at most a few of the numbers, another text nearly all."""
    words = [f"word{n}" for n in range(40)]
    first, second = analyze.sketch(words), analyze.sketch([*words[:-1], "other"])
    assert len(set(first) & set(second)) >= analyze.SKETCH_SIZE - 1
    other = analyze.sketch([f"quite{n}" for n in range(40)])
    assert len(set(first) & set(other)) <= 1
