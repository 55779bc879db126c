"""What readers are asked: labels, the views of an item, how many readers see each, and what their labels decide."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

from auditlib.errors import AuditError

#: what becomes of an item: a label's ``outcome``, or ``open`` while a reading is still due
CONFIRMED, REJECTED, CANNOT_TELL, OPEN = "confirmed", "rejected", "cannot_tell", "open"
OUTCOMES = (CONFIRMED, REJECTED, CANNOT_TELL, OPEN)
#: how readings become an outcome: two agree or a third decides; or more than half of all readers
Rule = Literal["third_on_conflict", "majority"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: a label has a number key
MOST_LABELS = 9


@dataclass(frozen=True)
class Label:
    """One answer a reader can give: ``value`` in files, ``words`` on screen, ``outcome`` what it says of the item."""

    value: str
    words: str
    outcome: str
    help: str = ""


@dataclass(frozen=True)
class View:
    """What is shown of an item: ``fields`` in order, with or without the picture, to ``readers`` first readers."""

    name: str
    fields: tuple[str, ...]
    readers: int = 2
    picture: bool = True


@dataclass(frozen=True)
class Task:
    """A question put to readers.

    Attributes
    ----------
    name : of the task, for files. title, instructions : shown on top of every packet.
    labels : at most nine, in the order of their number keys.
    views : what is shown; with several views nobody sees two views of one item.
    rule : ``third_on_conflict`` (two first readers per view) or ``majority`` of a view's readers.
    """

    name: str
    title: str
    instructions: str
    labels: tuple[Label, ...]
    views: tuple[View, ...]
    rule: Rule = "third_on_conflict"

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(label.value for label in self.labels)

    @property
    def outcome_of(self) -> dict[str, str]:
        """Label value -> outcome."""
        return {label.value: label.outcome for label in self.labels}

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields shown in any view."""
        return tuple(dict.fromkeys(f for v in self.views for f in v.fields))

    def view(self, name: str) -> View:
        return next(v for v in self.views if v.name == name)

    def as_plain(self) -> dict[str, Any]:
        """As lists and mappings, for JSON."""
        return asdict(self)

    def check(self) -> Task:
        """Refuse a task that no packet could be made of.

        Raises
        ------
        AuditError
            No label or view, more labels than number keys, a name taken or not in lower case, an unknown outcome, a
            number of readers that does not fit the rule.
        """
        for what, names, most in (("label", self.values, MOST_LABELS), ("view", [v.name for v in self.views], 26)):
            if not 0 < len(names) <= most:
                raise AuditError(f"task {self.name!r} has {len(names)} {what}s", mend=f"give 1 to {most}")
            if bad := [n for n in names if not _NAME.fullmatch(n) or list(names).count(n) > 1 or n == "item"]:
                raise AuditError(f"task {self.name!r}: {what} {bad[0]!r} is taken or no plain name",
                                 mend="use lower-case letters, digits and underscores, each name once")  # fmt: skip
        if bad := [x for x in self.labels if x.outcome not in OUTCOMES[:3]]:
            raise AuditError(f"task {self.name!r}: label {bad[0].value!r} has outcome {bad[0].outcome!r}",
                             mend=f"use one of {', '.join(OUTCOMES[:3])}")  # fmt: skip
        if self.rule not in ("third_on_conflict", "majority"):
            raise AuditError(f"task {self.name!r} has rule {self.rule!r}", mend="use third_on_conflict or majority")
        for v in self.views:
            if v.readers < 1 or (self.rule == "third_on_conflict" and v.readers != 2):
                raise AuditError(f"view {v.name!r} has {v.readers} readers",
                                 mend="use 2 with third_on_conflict, and at least 1 with majority")  # fmt: skip
        return self


def task_from_plain(plain: dict[str, Any]) -> Task:
    """The task that :meth:`Task.as_plain` wrote."""
    labels = tuple(Label(**x) for x in plain["labels"])
    views = tuple(View(**(v | {"fields": tuple(v["fields"])})) for v in plain["views"])
    return Task(**(plain | {"labels": labels, "views": views})).check()


#: is this item's key right and its question answerable? Two readers, a third on conflict
CURATION = Task(
    name="curation",
    title="Is this item in order?",
    instructions=(
        "Answer the question yourself before you look at the key. Then say what is wrong with the item, if anything. "
        "Decide from what is shown; do not ask a model. Some items are known to be in order and some were damaged on "
        "purpose: they show how well this reading works."
    ),
    labels=(
        Label("key_error", "Key error", CONFIRMED, "the key is not the right answer"),
        Label("ambiguous", "Ambiguous", CONFIRMED, "two answers can be defended, or the question cannot be answered"),
        Label("scorer_risk", "Scorer risk", CONFIRMED, "the key is right, but a right reply may well be scored wrong"),
        Label("no_issue", "No issue", REJECTED, "one right answer, and the key is it"),
        Label("cannot_tell", "Cannot tell", CANNOT_TELL, "it needs knowledge that you do not have"),
    ),
    views=(View("whole", ("question", "options", "key")),),
)

_SUFFICIENT = (
    Label("sufficient", "Sufficient", CONFIRMED, "what is shown determines the answer"),
    Label("not_sufficient", "Not sufficient", REJECTED, "more would have to be seen"),
    Label("cannot_tell", "Cannot tell", CANNOT_TELL, "it needs knowledge that you do not have"),
)

#: which part of an item suffices? Three readers of the whole item, five of each single view, nobody sees two views
DEPENDENCE = Task(
    name="dependence",
    title="Can this be answered from what is shown?",
    instructions=(
        "Say whether what you see here determines the right answer. A part of the item may be left out on purpose. "
        "Knowledge that any educated reader has is allowed; guessing is not."
    ),
    labels=_SUFFICIENT,
    views=(
        View("full", ("question", "options"), readers=3),
        View("image_only", ("options",), readers=5),
        View("text_only", ("question", "options"), readers=5, picture=False),
    ),
    rule="majority",
)
