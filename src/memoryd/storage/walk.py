"""Follows a running hash over what is left of a log, and tells the gaps in it. Changes nothing."""

from typing import NamedTuple

from memoryd.domain.chain import GENESIS, anchor, link_digest
from memoryd.storage.gaps import Gap


class Link(NamedTuple):
    """An entry of a chain.

    ``chain`` is None if its running hash is lost, ``digest`` is empty if all but that is.
    """

    sequence: int
    digest: bytes
    chain: bytes | None


class Walk:
    """Follows the running hash over numbers of which some are gone."""

    def __init__(self, known: list[Gap], now_ms: int) -> None:
        self._known = known
        self._now_ms = now_ms
        self._heard: Link | None = None  # the last running hash of a number that has no entry
        self._gaps: list[Gap] = []
        self.end = 0
        self.chain: bytes | None = GENESIS
        self._anchored = False  # the running hash is no longer the one that was written

    def hear(self, link: Link) -> None:
        """Take note of a running hash whose event or revision is gone."""
        if link.sequence > max(self.end, self._heard.sequence if self._heard else 0):
            self._heard = link

    def step(self, link: Link) -> bool:
        """Go on to an entry that is there; False if it is not the one that was written."""
        if link.sequence > self.end + 1:
            self._pass_over(link.sequence - 1, resumes=link.chain is not None)
        if self._anchored:
            link = link._replace(chain=None)
        found = link_digest(self.chain, link.digest) if self.chain is not None else None
        if found is not None and link.chain is not None and found != link.chain:
            self._gaps.append(Gap(link.sequence, link.sequence, link.chain, self._now_ms))
            self.end, self.chain = link.sequence, link.chain
            return False
        self.end, self.chain = link.sequence, link.chain or found
        return True

    def finish(self) -> list[Gap]:
        """The gaps, also that at the end, if more is known to have been written."""
        last = max((gap.last for gap in self._known), default=0)
        last = max(last, self._heard.sequence if self._heard else 0)
        if last > self.end:
            self._pass_over(last, resumes=False)
        return self._gaps

    def _pass_over(self, last: int, *, resumes: bool) -> None:
        """Record that everything up to a number is gone; what was recorded before stays."""
        before = self.chain or GENESIS
        for gap in self._known:
            if gap.first == self.end + 1 and gap.last <= last:
                self._gaps.append(gap)
                self.end, self.chain = gap.last, gap.chain or None
                self._anchored = False
        if self.end == last:
            if self.chain is None and not resumes:
                self.chain, self._anchored = anchor(before, self._gaps[-1].first, last), True
                self._gaps[-1] = self._gaps[-1]._replace(chain=self.chain)
            return
        first = self.end + 1
        stop = next((gap.first - 1 for gap in self._known if first < gap.first <= last), last)
        heard = self._heard
        if heard is not None and heard.sequence == stop and heard.chain:
            self.chain, self._anchored = heard.chain, False
        elif stop == last and resumes:
            self.chain, self._anchored = None, False
        else:
            self.chain, self._anchored = anchor(before, first, stop), True
        self._gaps.append(Gap(first, stop, self.chain or b"", self._now_ms))
        self.end = stop
        if stop < last:
            self._pass_over(last, resumes=resumes)
