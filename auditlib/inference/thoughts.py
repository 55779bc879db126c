"""What a model thought before it answered, apart from the answer, where the server leaves both in one text."""

from __future__ import annotations

from auditlib.extract.text import CLOSED, OPENED

#: how near to the end of a prompt an opening tag begins the reply
_TAIL = 40


def split_thoughts(text: str, prompt: str | None = None) -> tuple[str, str | None]:
    """The answer and the thoughts; None for a reply without any.

    Parameters
    ----------
    text : the reply. What comes before the last closing tag are thoughts, and all of it where a block never closes.
    prompt : as the model got it: some chat templates end with the opening tag, so that the reply begins in the block.

    Examples
    --------
    >>> split_thoughts("<think>A or C?</think> B")
    ('B', 'A or C?')
    >>> split_thoughts("A or C", prompt="... <think>")
    ('', 'A or C')
    """
    closed = list(CLOSED.finditer(text))
    end = closed[-1].end() if closed else 0
    before, after = text[: closed[-1].start()] if closed else "", text[end:]
    left = OPENED.search(after)
    if left:  # cut off while thinking: what stands before the tag is no answer either
        before, after = f"{before}\n{after[: left.start()]}\n{after[left.end() :]}", ""
    elif not closed:
        if not _begun(prompt):
            return text, None
        before, after = text, ""
    return after.strip(), OPENED.sub("", before).strip()


def _begun(prompt: str | None) -> bool:
    tail = (prompt or "")[-_TAIL:].rstrip()
    opened = list(OPENED.finditer(tail))
    return bool(opened) and opened[-1].end() == len(tail)
