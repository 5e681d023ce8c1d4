"""Cues: the turns of phrase by which people and agents say what kind of thing they are saying. Pure.

Owns the kinds of statements and the phrases that mark them in the languages that coding
conversations are mostly held in. A language without cues is ranked by the other signs alone.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Final


class Kind(IntEnum):
    """What a statement does."""

    FACT = 0
    ASK = 1
    DECISION = 2
    CHANGE = 3
    FAILURE = 4
    CAUSE = 5
    OPEN = 6


# Cues are single words and pairs of words ("instead of"), as `terms.words` gives them.
_CUES: Final = {
    Kind.DECISION: """
        decided decide decides decision deciding chose chosen choose opted prefer preferred agreed rejected reject recommend recommended
        recommendation must shouldnt intentional intentionally deliberately tradeoff tradeoffs insist
        instead_of rather_than favour_of favor_of go_with going_with went_with settled_on settle_on ruled_out rule_out we_use we_keep
        we_drop we_avoid we_switch will_use should_use should_keep should_not should_be must_not to_avoid lets_use lets_keep lets_not
        lets_go lets_drop lets_move lets_make lets_do dont_want no_need makes_sense better_to on_purpose by_design only_approach
        not_worth turned_down
        entschieden entscheiden entscheidung beschlossen stattdessen statt lieber bevorzugen nehmen_wir bleiben_bei
        décidé décidons décider choisi plutôt_que au_lieu decidido decidimos decidir elegido elegimos en_lugar en_vez invece_di em_vez
    """,
    Kind.CHANGE: """
        fixed fixes added removed deleted dropped renamed moved replaced changed updated implemented created wrote refactored migrated
        merged committed pushed deployed installed configured reverted rebased extracted restored resolved solved published
        passed succeeded successfully completed excluded switched converted simplified enabled disabled introduced rewrote bumped
        saved_to saved_in saved_as cleaned_up now_passes now_pass now_works now_work now_uses now_use now_returns now_handles
        now_builds tests_pass tests_passing are_green passes_now works_now
        behoben hinzugefügt entfernt geändert umgestellt ersetzt erledigt gelöst läuft_jetzt funktioniert_jetzt
        corrigé ajouté supprimé remplacé corregido añadido eliminado arreglado corrigido adicionado
    """,
    Kind.FAILURE: """
        error errors fail fails failed failing failure failures broke broken breaks crash crashes crashed crashing bug bugs exception
        exceptions traceback regression deadlock missing denied refused timeout leak leaks leaking conflict conflicts stuck hang hangs
        warning warnings wrong incorrect
        race_condition timed_out not_work not_working doesnt_work didnt_work dont_work cant_find not_found cannot_find not_exist
        doesnt_exist wont_start wont_compile not_permitted isnt_working
        fehler fehlgeschlagen kaputt abgestürzt stürzt schlägt_fehl erreur erreurs échoué échoue plante falla falló fallo erro errore
    """,
    Kind.CAUSE: """
        because causes caused culprit explains
        root_cause caused_by real_reason actual_reason real_problem actual_problem real_issue actual_issue the_reason problem_is problem_was
        issue_is issue_was turns_out turned_out due_to is_why which_means so_that
        weil ursache deshalb liegt_daran parce_que à_cause porque debido perché
    """,
    Kind.OPEN: """
        todo fixme remaining remains deferred defer postponed postpone pending unresolved
        needs_to need_to still_needs still_need still_fails still_failing still_open still_missing still_broken still_have not_yet next_step next_steps
        follow_up followup for_later open_question open_questions left_open out_of_scope future_work
        noch_offen noch_nicht später reste_à pas_encore pendiente todavía_no
    """,
}
_FOREIGN: Final = {
    Kind.DECISION: "решил|вместо|выбра|决定|改用|选择|选用|采用|而不是|不再使用|建议|決め|決定|採用|ことにし|にしましょう|代わりに|方針|やめ",
    Kind.CHANGE: "исправ|добав|удал[еи]|замен|修复|已修|修改|添加|新增|删除|替换|更新|重构|实现了|完成|通过了|修正|直しま|追加し|削除し|変更し|置き換え|対応しま|通りま|成功",
    Kind.FAILURE: "ошибк|упал|не работает|сбой|错误|失败|报错|崩溃|异常|泄漏|超时|エラー|失敗|不具合|落ち|動かな|動作しな|例外|バグ|クラッシュ",
    Kind.CAUSE: "потому|из-за|причин|因为|原因|由于|所以|导致|ため|ので|せいで",
    Kind.OPEN: "ещё не|осталось|позже|还没|尚未|待办|下一步|以后|稍后|まだ|残って|今後|次に|後で",
}
_WORDS: Final = {
    word: kind for kind, cues in _CUES.items() for word in cues.split() if "_" not in word
}
_PAIRS: Final = {
    tuple(pair.split("_")[:2]): kind
    for kind, cues in _CUES.items()
    for pair in cues.split()
    if "_" in pair
}
_WORD_SET: Final = frozenset(_WORDS)
_CHANGES: Final = frozenset(word for word, kind in _WORDS.items() if kind is Kind.CHANGE)
_HELPERS: Final = frozenset(
    ("is", "are", "was", "were", "been", "has", "have", "now", "successfully")
)
_PAIR_SET: Final = frozenset(_PAIRS)
_FOREIGN_CUES: Final = {kind: re.compile(cues) for kind, cues in _FOREIGN.items()}
# What a statement does if it does several things: the rarer and more telling first.
_ORDER: Final = (Kind.OPEN, Kind.DECISION, Kind.CAUSE, Kind.CHANGE, Kind.FAILURE)


def _either(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_ASK: Final = _either(
    r"[?？؟]\s*[\"'”)*_`]*$",
    r"^(?:(?:ok(?:ay)?|so|and|now|then|also|hey|hi|hello|great|yes|no|please|actually|hmm),? )*(?:please|can (?:you|we)|could (?:you|we)|would you|will you|i(?:'d| would) like|i want|i need|we need|let'?s|help"
    r"|add|fix|make|create|write|implement|change|update|remove|delete|use|run|check|find|look|show|explain|tell|give|why|what|how|where|which|when|is|are|do|does|did"
    r"|should|review|refactor|move|rename|replace|try|test|build|continue|generate|read|investigate|figure out|set up|install|commit|push|merge|rebase|open|debug|convert|prepare|analy[sz]e|compare|propose|describe|search|start|stop|upgrade|downgrade|switch|drop|keep|revert|deploy|release|document|extend|ignore|improve|clean up|cd|finish|merge|split|don'?t|never|always)\b",
    r"^(?:bitte|kannst|können|könntest|warum|wie|wieso|ich (?:möchte|will|hätte)|mach|s'il|peux-tu|pouvez|pourquoi|comment|por favor|puedes|cómo|por qué)\b",
    r"请|帮我|^(?:帮|为什么|怎么|如何|能否|可以)|(?:吗|呢)[?？]?$|(?:ください|下さい|お願い\S*|でしょうか|ですか|ますか|してほしい)[。？?]?$|^(?:пожалуйста|почему|как|можешь)\b",
)

# Openers of no content: they are cut from the front of a statement.
OPENER: Final = re.compile(
    r"(?:(?:(?:ok(?:ay)?|alright|great|perfect|excellent|good|nice|sure|right|yes|yeah|hmm+|ah|oh|well|so|now|and|but|then|also|actually|basically|finally|in short|i see|of course|thanks|thank you"
    r"|got it|done|wow|ultrathink|think hard(?:er)?|a+h+|uh+|um+|ugh|cool|fantastic|wonderful|great (?:question|news|point)|good (?:point|catch|question)|you'?re (?:absolutely )?right|sounds good|also gut|gut|好的|はい|了解(?:です|しました)?)"
    r"(?:\s*[,!.:–—，！、]+|\s*-\s|\s+(?=i\b|we\b|you\b|the\b|let\b|it\b|this\b|that\b|there\b|can\b|please\b))\s*)|(?:[✅❌⚠\ufe0f🎉✨🔧🚀📝💡🐛👍✔✓✗]+\s*))+",
    re.IGNORECASE,
)
# Statements of no content: they announce, offer or greet, and nothing has happened yet.
EMPTY: Final = _either(
    r"^(?:i'?ll|i will|let me|let'?s(?= (?:see|check|look|start|first|take|try|begin|verify|now|continue|examine|explore|find|read|run|search|fix|update|add|create|test|proceed))"
    r"|i(?:'m| am) (?:now |just |also )?(?:going to|about to|ready|here|happy|glad|\w+ing\b)|i need to|i should|i can (?:help|see|now|also)|now (?:i|let|we)\b|first,? (?:i|let)\b|next,? (?:i|let)\b|time to|would you like|shall i|should i|do you want|feel free|happy to|"
    r"is there anything|anything else|let me know|hope this|here(?:'s| is| are)(?: (?:the|a|an|my|what|how|some|all))?(?: [\w-]+){0,6}:?$|how can i|what would you|looking forward|thank|you'?re welcome|sounds good|sure\b|to help you|i understand"
    r"|caveat:|\[request interrupted|this session is being continued|please continue the conversation|no response requested|interrupted by user|tool (?:ran|use)|todos have been|continue to use the todo|launching skill|the user (?:doesn't want|has opened)|perfect|excellent|great"
    r"|analysis:|summary:|ich werde|lass mich|ich schaue|je vais|voy a|déjame)",
    r"^(?:让我|我来|我将|好的|请问还有|まず|では、|それでは)",
)
# Lines of programs that say what went wrong or how it ended, in any tool's output.
OUTCOME: Final = re.compile(
    r"^(?!\s*(?:\d+\s*[→│|\t]|//|\*|#|[\"'{}\[]|\w+\())[^\n]{0,160}?(?:\b(?:[A-Z]\w*(?:Error|Exception|Failure)\b(?:: ?[^\n]+|$)|(?:[Ee]rror|fatal|panic|FAILED|FAIL|ERR!|E)(?:\[\w+\])?[: ][^\n]{4,}|error TS\d+[^\n]+"
    r"|command not found|No such file or directory|Permission denied|[Oo]peration not permitted|cannot [a-z]+ [^\n]+|[A-Z][a-z]+ failed\b[^\n]*|CONFLICT \([^\n]+|rejected\]?[^\n]*"
    r"|\d+ (?:passed|failed|errors?|failures?|problems?)\b[^\n]*)|^\[[\w./-]+ [0-9a-f]{7,12}\] [^\n]+|^https://\S+/(?:pull|issues|commit|gist)\S*)",
    re.MULTILINE,
)
# The same at the beginning of a line that a user pasted.
PASTED: Final = re.compile(
    r"(?:[\w.]*(?:Error|Exception)|[Ee]rror(?:\[\w+\])?|fatal|panic|FAILED|FAIL|npm ERR!|Traceback)\b[: ]"
)
FAILED: Final = re.compile(
    r"error|exception|fail|fatal|panic|not found|no such|denied|not permitted|cannot|conflict|rejected",
    re.IGNORECASE,
)


def cues_of(words: Sequence[str], text: str) -> set[Kind]:
    """Which kinds of cues a statement carries, by its words; other scripts are searched."""
    found = {_WORDS[word] for word in _WORD_SET.intersection(words)}
    found.update(_PAIRS[pair] for pair in _PAIR_SET.intersection(pairwise(words)))
    if not text.isascii():
        found.update(kind for kind, cue in _FOREIGN_CUES.items() if cue.search(text))
    return found


def kind_of(cues: set[Kind], request: str = "") -> Kind:
    """What a statement does, by its cues; of a user's statement also whether it is a request."""
    if request and _ASK.search(request):
        return Kind.ASK
    return next((kind for kind in _ORDER if kind in cues), Kind.FACT)


def is_outcome(words: Sequence[str]) -> bool:
    """Whether a statement says that something was done: "file created by us" does not."""
    if not words:
        return False
    ends = words[0] in _CHANGES or words[-1] in _CHANGES
    return ends or any(a in _HELPERS and b in _CHANGES for a, b in pairwise(words))


# Statements that describe a plan, an option or a place rather than something that happened.
ASIDE: Final = re.compile(
    r"(?:\*\*)?(?:pros?|cons?|purpose|input|output|location|files?|example|note|usage|step \d+|phase \d+|option \w|priority|status|effort|estimated|"
    r"low|medium|high|critical|before|after|line \d+|import|type|name|description|path|url|author|date|version)\b[^:]{0,24}:",
    re.IGNORECASE,
)
