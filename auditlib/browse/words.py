"""What the browser calls things: detectors, conditions, categories, severities, states of replies."""

from __future__ import annotations

from auditlib.report.flags import WORDS, heading

#: detectors of the audit and studies of the pool
FINDINGS = WORDS | {
    "curation": "Named by the curation",
    "dependence": "Stands out in what models share",
    "judges": "Judges disagree or miss it",
    "sensitivity": "Answers hang on what should not matter",
    "label_conflict": "Suspect key, by rank",
}
CONDITIONS = {"full": "with image", "blind": "without image", "image_only": "image and options only",
              "none": "options only"}  # fmt: skip
CATEGORIES = {"visual_dependent": "visual dependent", "visual_supplement": "visual supplement",
              "text_only": "text only", "conflicting": "conflicting"}  # fmt: skip
#: of an item's replies; every other word is a status of the responses contract
STATES = {"read": "every reply was read", "unread": "a reply without readable answer", "failed": "a call failed",
          "missing": "a reply is missing", "truncated": "a reply was cut off",
          "filtered": "a reply was filtered"}  # fmt: skip
ANSWERS = {"choice": "multiple choice", "yesno": "yes or no", "open": "open answer", "numeric": "number"}


def words(table: dict[str, str], name: str) -> str:
    """The words for a name; a name without words speaks for itself."""
    return table.get(name) or name.replace("_", " ")


def finding(detector: str) -> str:
    """What a detector's or a study's findings are called."""
    return FINDINGS.get(detector) or heading(detector)
