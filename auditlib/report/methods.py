"""Methods: definitions, readers of answers, the detectors, references, and the limits of all that."""

from __future__ import annotations

from typing import Any

from auditlib.extract import RULES
from auditlib.numerals import count
from auditlib.report.blocks import Run, Section, b, h3, p, section, table, ul
from auditlib.report.exhibits import made

DEFINITIONS: tuple[tuple[str, str], ...] = (
    ("Full and blind run", "The same questions with the image, and with every image removed from the prompt and "
                           "nothing "
     "else changed. F and B count the models (times draws) that are right on an item; n is their number."),
    ("Categories", "Visual dependent: F ≥ .99 n and B ≤ .01 n. Conflicting: B − F > n/5. Visual supplement: F − B ≥ "
                   "n/5. "
     "Text only: the rest. Zero gain: F = B exactly. All comparisons are made in integers. The visual-dependent share "
     "hangs on its threshold, so it is never the headline."),
    ("Arms", "Judged: the verdicts of the judge that the params name. Exact: the letter that the reply names, compared "
     "with the key; no model in the loop. Votes, κ, positions and option similarity always use letters."),
    ("Abstention", "A reply that names no option is Z. It has no vote; in accuracies it counts as wrong. Bounds say "
                   "how far "
     "real answers in its place could move a share."),
    ("Null and excess", "One permutation of the item ids is applied to the blind results of all models, which makes "
                        "the "
     "F × B table a random table with fixed margins. Excess = observed share − mean of the null. Headline: permuted "
     "inside "
     "the official categories (and numbers of options)."),
    ("p value", "One-sided. Exact, by rook polynomials, where the region is a union of disjoint blocks and the pool "
                "small "
     "enough; otherwise the normal tail of the closed-form mean and variance. Random tables stand beside it with "
     "(g + 1)/(N + 1). p is of the upper tail (more items than chance); p_lower in statistics.csv is the other tail."),
    ("Intervals", "Wilson 95% for shares; where items share a picture or a base item, and where answers are graded "
     "or repeated, Wilson with the effective number of items: the unit is the item or its cluster, never the draw. "
     "Excess: bootstrap over items (over images or clusters where they are known), with "
     "the null computed again in every draw; strata under 50 items have their own interval or none."),
    ("Multiplicity", "Official categories of one metric and arm: Benjamini-Hochberg q. Headline p over all pools "
                     "of a run: Holm, in "
     "the index page. Pools with one model left out, second arms and split halves are sensitivity rows and have no q."),
    ("Votes against the key", "Letters of the full runs, Z left out, two votes at least. Unanimous: all votes are "
                              "one same "
     "option that is not the key. High: no vote is the key. Medium: two thirds agree on one such option. The number of "
     "voters stands beside the tier."),
    ("Agreement", "Fleiss’ κ over items on which every model names an option, with an item bootstrap; "
                  "Krippendorff’s α on "
     "all items with two letters. Same wrong option: when two models are both wrong, how often they agree, against "
     "letters "
     "shuffled over items."),
    ("Options", "After folding case, width, articles and punctuation: equal texts or equal quantities score 1, one "
                "text = "
     "the other plus one word .9, else at most .89 by edit ratio. Flagged from .9."),
)  # fmt: skip

LIMITS: tuple[tuple[str, str], ...] = (
    ("Model pool", "A pool fixes the direction of a signal, not its size: shares and excess move with the number and "
     "families of models. Ranges with one model left out are printed for that reason."),
    ("Mechanism", "The excess says that ties occur beyond arithmetic. It does not tell language priors from option "
     "statistics or contamination."),
    ("Correlated errors", "Models share mistakes. Unanimity ranks items for people; it does not measure an error "
                          "rate."),
    ("Format", "Shown to work from three options on. Binary formats are outside that range, and base rates belong "
               "to one "
     "benchmark."),
)  # fmt: skip

REFERENCES = (
    "Balepur et al. (2026). BenchMarker: an education-inspired rubric for multiple-choice benchmarks.",
    "Benjamini & Hochberg (1995). Controlling the false discovery rate. J. R. Stat. Soc. B 57.",
    "Chen et al. (2024). Are we on the right way for evaluating large vision-language models? (MMStar; MG and ML).",
    "Duan et al. (2024). VLMEvalKit: an open-source toolkit for evaluating large multi-modality models.",
    "Fleiss (1971). Measuring nominal scale agreement among many raters. Psychol. Bull. 76.",
    "Goyal et al. (2017). Making the V in VQA matter.",
    "Guan et al. (2024). HallusionBench.",
    "Holm (1979). A simple sequentially rejective multiple test procedure. Scand. J. Stat. 6.",
    "Kim et al. (2025). Correlated errors in large language models.",
    "Krippendorff (2011). Computing Krippendorff’s alpha-reliability.",
    "Northcutt et al. (2021). Pervasive label errors in test sets.",
    "Phipson & Smyth (2010). Permutation p-values should never be zero. Stat. Appl. Genet. Mol. Biol. 9.",
    "Riordan (1958). An introduction to combinatorial analysis (rook polynomials).",
    "Wilson (1927). Probable inference, the law of succession, and statistical inference. JASA 22.",
    "Zheng et al. (2024). Large language models are not robust multiple choice selectors.",
)


def methods(audit: Any, built: dict[str, Any]) -> Section:
    """The section ``methods``."""
    s = audit.settings
    chain = ", then ".join(s.exact)
    told: list[list[Run]] = [[b(f"{name}. "), text] for name, text in DEFINITIONS]
    used = {*s.exact, *(["yesno"] if "exact_yesno" in audit.steps["arms"] else []), "empty", "truncated-think"}
    rules = [[r, words] for r, words in RULES if r.partition(":")[0] in used]
    failed = "left out of full-to-blind comparisons" if s.failed == "missing" else "counted as wrong"
    return section(
        "methods", "Methods", ul(told), made(built, "table1_detectors"),
        h3("How answers are read"),
        p(f"Readers of this pool, in order: {chain}. A reader answers or abstains with a reason and never sees the "
          "key; the "
          f"first that answers decides. Failed and missing replies are {failed}. Each random step has its own "
          "generator, "
          f"seeded by the run’s seed, the pool’s name and its purpose; {count(s.permutations)} random tables, "
          f"{count(s.bootstrap)} bootstrap draws, {count(s.splits)} split halves."),
        table("", "Rules of these readers", ["Rule", "What it does"], [True, True], rules, note="Z: an abstention.",
              widths=[0, 1]),
        h3("Limits"), ul([[b(f"{name}. "), text] for name, text in LIMITS]),
        h3("References"), ul([[r] for r in REFERENCES]),
    )  # fmt: skip
