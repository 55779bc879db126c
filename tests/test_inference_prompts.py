"""Prompts and conditions: the texts that are sent, and what each condition leaves of them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from auditlib.calls import Generation, Picture, Reply
from auditlib.errors import AuditError
from auditlib.frames import CONDITIONS
from auditlib.inference import images
from auditlib.inference.conditions import GUESS, ablate, joined
from auditlib.inference.items import QuestionItem, read_question_items
from auditlib.inference.plan import RunSettings, forecast, pilot, plan_coverage, requests_of
from auditlib.inference.prompts import LAYOUTS, PLACEHOLDERS, build_prompt, prompt_version
from auditlib.synth.embedded import materialise


def png(colour: tuple[int, int, int] = (10, 20, 30), size: tuple[int, int] = (6, 4)) -> bytes:
    out = io.BytesIO()
    PIL.Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def shown(item: QuestionItem, layout: str = "vlmevalkit", placeholder: str = "keep", condition: str = "full") -> list:
    """Texts as they are, pictures as the number of the item's picture."""
    prompt = build_prompt(item, layout, placeholder)
    parts = joined(ablate(prompt.parts, condition, question_parts=prompt.question_parts))
    return [p if isinstance(p, str) else item.pictures.index(p) for p in parts]


@pytest.fixture(scope="module")
def tinysee() -> list[QuestionItem]:
    return read_question_items(materialise("tinysee", "unused") / "TinySee.tsv")


@pytest.fixture
def item() -> QuestionItem:
    return QuestionItem(
        item="7",
        question="See <image 1> beside <image 2>: which?",
        options=("red", "", "<image 3>"),
        hint="look",
        key="A",
        stratum="s",
        pictures=tuple(images.picture_from_bytes(png((i, 0, 0))) for i in range(4)),
    )


def test_choice_layout_is_the_toolkits(item):
    # the texts of VLMEvalKit 0.0.20's multiple-choice sets; empty options keep the others' letters
    options = "Options:\nA. red\nC. <image 3>\nPlease select the correct answer from the options above. \n"
    text = f"Hint: look\nQuestion: See <image 1> beside <image 2>: which?\n{options}"
    assert shown(item) == [0, 1, 2, 3, text]


def test_placeholders_give_way_to_pictures(item):
    # as in its MMMU sets; the picture that no placeholder names stands first
    assert shown(item, placeholder="remove") == [
        3, "Hint: look\nQuestion: See ", 0, " beside ", 1, ": which?\nOptions:\nA. red\nC. ", 2,
        "\nPlease select the correct answer from the options above. \n",
    ]  # fmt: skip
    bare = QuestionItem(**{**item.__dict__, "pictures": ()})
    ended = QuestionItem(**{**item.__dict__, "question": "This? <image 1>"})
    assert shown(ended, placeholder="remove")[:5] == [
        1,
        3,
        "Hint: look\nQuestion: This? ",
        0,
        "\nOptions:\nA. red\nC. ",
    ]
    bare_ended = QuestionItem(**{**ended.__dict__, "pictures": ()})
    assert shown(ended, placeholder="remove", condition="blind") == shown(bare_ended, placeholder="remove")
    for condition in ("blind", "none"):
        assert shown(item, placeholder="remove", condition=condition) == shown(
            bare, placeholder="remove", condition=condition
        )


@pytest.mark.parametrize(
    ("answer_type", "question", "expected"),
    [
        ("yesno", "Is it red?", ["Is it red?\nPlease answer yes or no."]),
        ("yesno", "Is it red? Please answer yes or no.", ["Is it red? Please answer yes or no."]),
        ("open", "How many?", ["How many?"]),
        ("choice", "Which letter is drawn?", ["Question: Which letter is drawn?\n"]),
    ],
)
def test_questions_without_options(answer_type, question, expected):
    assert shown(QuestionItem("1", question, hint="h" * (answer_type != "choice"), answer_type=answer_type)) == expected


def test_reasoning_layout_asks_for_a_box(item):
    text = shown(item, "reasoning")[-1]
    assert text.startswith("Hint: look\nQuestion: See") and text.endswith("in the form \\boxed{LETTER}.")
    assert shown(QuestionItem("1", "q", answer_type="yesno"), "reasoning")[0].endswith(
        "yes or no in the form \\boxed{ANSWER}."
    )


def test_versions_differ_and_names_are_checked():
    assert len({prompt_version(a, b) for a in LAYOUTS for b in PLACEHOLDERS}) == 4
    with pytest.raises(ValueError, match="layout is 'x'"):
        prompt_version("x")
    with pytest.raises(ValueError, match="placeholder is 'x'"):
        prompt_version("reasoning", "x")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
@pytest.mark.parametrize("mode", ["silent", "told_to_guess"])
def test_text_of_full_and_blind_is_the_same_for_every_item(tinysee, layout, placeholder, mode):
    settings = RunSettings("m", ("full", "blind"), mode, layout, placeholder)
    pairs: dict[str, list] = {}
    for request in requests_of(tinysee, settings):
        pairs.setdefault(request.item, []).append(request)
    assert len(pairs) == 300
    for full, blind in pairs.values():
        assert full.text_sha256 == blind.text_sha256 and full.key != blind.key
        assert len(full.pictures) == 1 and blind.parts == (full.text,)


def test_conditions_table(tinysee):
    item = tinysee[0]
    requests = {r.condition: r for r in requests_of(tinysee, RunSettings("m", CONDITIONS), only={item.item})}
    full = requests["full"]
    question = f"Question: {item.question}\n"
    own = full.pictures[0].sha256
    kept = {c: (r.text.startswith(question), "Options:\n" in r.text, len(r.pictures)) for c, r in requests.items()}
    assert kept == {
        "full": (True, True, 1), "blind": (True, True, 0), "image_only": (False, True, 1), "none": (False, True, 0),
        "blank": (True, True, 1), "gray": (True, True, 1), "wrong_image": (True, True, 1),
    }  # fmt: skip
    assert requests["image_only"].pictures[0].sha256 == own
    assert all(requests[c].pictures[0].sha256 != own for c in ("blank", "gray", "wrong_image"))
    assert requests["image_only"].text == requests["none"].text == full.text.removeprefix(question)
    assert len({r.key for r in requests.values()}) == 7
    assert all(GUESS not in r.text for r in requests.values())


def test_told_to_guess_adds_one_sentence_everywhere(tinysee):
    for r in requests_of(tinysee, RunSettings("m", CONDITIONS, "told_to_guess"), only={tinysee[0].item}):
        assert r.text.endswith(GUESS) and r.text.count(GUESS) == 1


def test_blank_and_gray_keep_the_size():
    pixels = np.zeros((3, 5, 3), np.uint8)
    pixels[:, :, 0], pixels[0, 0, 1] = 200, 150
    out = io.BytesIO()
    PIL.Image.fromarray(pixels).save(out, "PNG")
    picture = images.picture_from_bytes(out.getvalue())
    for made, colour in ((images.blank(picture), (200, 10, 0)), (images.gray(picture), (128, 128, 128))):
        image = PIL.Image.open(io.BytesIO(made.load()))
        assert image.size == (5, 3) and image.getcolors() == [(15, colour)]
        assert images.picture_from_bytes(made.load()).sha256 == made.sha256
    assert images.blank(picture).load() == images.blank(picture).load()


def test_a_turned_photograph_keeps_its_shown_size():
    out, exif = io.BytesIO(), PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.new("RGB", (8, 4)).save(out, "JPEG", exif=exif)
    made = images.gray(images.picture_from_bytes(out.getvalue()))
    assert PIL.Image.open(io.BytesIO(made.load())).size == (4, 8)


@pytest.mark.parametrize(("kind", "mime"), [("PNG", "png"), ("JPEG", "jpeg"), ("WEBP", "webp"), ("GIF", "gif")])
def test_kinds_of_pictures(kind, mime):
    out = io.BytesIO()
    PIL.Image.new("RGB", (2, 2)).save(out, kind)
    assert images.picture_from_bytes(out.getvalue()).mime == f"image/{mime}"


def test_a_picture_that_cannot_be_decoded_is_named():
    picture = images.picture_from_bytes(png()[:40])
    with pytest.raises(AuditError, match="cannot be decoded"):
        images.blank(picture)


def test_a_picture_that_changes_is_noticed(tmp_path: Path):
    path = tmp_path / "a.png"
    path.write_bytes(png())
    picture = images.picture_from_path(path)
    assert picture.load() == png()
    path.write_bytes(png((1, 2, 3)))
    with pytest.raises(AuditError, match="changed since"):
        picture.load()
    path.unlink()
    with pytest.raises(AuditError, match=r"FileNotFoundError.*changed since"):
        picture.load()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "L", "P", "1", "I;16", "CMYK"])
def test_every_kind_of_pixel_has_a_mean_colour(mode):
    out = io.BytesIO()
    PIL.Image.new(mode, (4, 2)).save(out, "JPEG" if mode == "CMYK" else "PNG")
    picture = images.picture_from_bytes(out.getvalue())
    for made in (images.blank(picture), images.gray(picture)):
        assert PIL.Image.open(io.BytesIO(made.load())).size == (4, 2)


def wrong(items: list[QuestionItem], **settings) -> dict[str, str]:
    asked = requests_of(items, RunSettings("m", ("wrong_image",), **settings))
    return {r.item: r.pictures[0].sha256 for r in asked}


def test_wrong_pictures_come_from_the_stratum_and_are_never_the_items_own(tinysee):
    drawn = wrong(tinysee)
    by_stratum: dict[str, set[str]] = {}
    for i in tinysee:
        by_stratum.setdefault(i.stratum, set()).add(i.pictures[0].sha256)
    for i in tinysee:
        assert drawn[i.item] != i.pictures[0].sha256 and drawn[i.item] in by_stratum[i.stratum]
    anywhere = wrong(tinysee, wrong_image="any")
    assert any(anywhere[i.item] not in by_stratum[i.stratum] for i in tinysee)


def test_wrong_pictures_do_not_depend_on_the_order(tinysee):
    assert wrong(tinysee) == wrong(tinysee[::-1])
    assert wrong(tinysee, seed=1) != wrong(tinysee)


def test_a_lone_picture_of_a_stratum_is_left_out_and_said():
    items = [
        QuestionItem(str(i), "q", ("a", "b"), stratum="xyy"[i], pictures=(images.picture_from_bytes(png((i, 0, 0))),))
        for i in range(3)
    ]
    assert set(wrong(items)) == {"1", "2"}
    (row,) = plan_coverage(items, RunSettings("m", ("full", "wrong_image")))
    assert (row["n"], row["condition"], row["reason"]) == (1, "wrong_image", "no other picture in its stratum")
    assert set(wrong(items, wrong_image="any")) == {"0", "1", "2"}


def test_items_without_pictures():
    with_one = [
        QuestionItem("1", "q", ("a", "b"), pictures=(images.picture_from_bytes(png()),)),
        QuestionItem("2", "q"),
    ]
    assert {r.item for r in requests_of(with_one, RunSettings("m", ("full", "blind")))} == {"1"}
    assert {r["reason"] for r in plan_coverage(with_one, RunSettings("m"))} == {"the item has no picture"}
    text_only = with_one[1:]
    assert len(list(requests_of(text_only, RunSettings("m", ("blind",))))) == 1
    with pytest.raises(AuditError, match="have no pictures, and the condition 'full'"):
        next(requests_of(text_only, RunSettings("m")))


def test_nothing_left_is_not_asked():
    items = [QuestionItem("1", "q", answer_type="open", pictures=(images.picture_from_bytes(png()),))]
    assert list(requests_of(items, RunSettings("m", ("none",)))) == []
    assert plan_coverage(items, RunSettings("m", ("none",)))[0]["n"] == 1


def test_samples_have_their_own_keys_and_seeds(tinysee):
    settings = RunSettings("m", ("blind",), samples=3, generation=Generation(temperature=1.0, seed=5))
    requests = list(requests_of(tinysee[:2], settings))
    assert [(r.sample, r.generation.seed) for r in requests] == [(0, 5), (1, 6), (2, 7)] * 2
    assert len({r.key for r in requests}) == 6


def test_forecast(tinysee):
    settings = RunSettings("m", ("full", "blind"))
    guess = forecast(tinysee, settings, price_in=2.0, price_out=10.0, picture_tokens=100)
    assert guess.calls == 600 and guess.by_condition == {"full": 300, "blind": 300} and guess.seconds is None
    assert guess.basis == "length of the texts"
    assert guess.price == pytest.approx((guess.tokens_in * 2 + guess.tokens_out * 10) / 1e6)
    asked = pilot(tinysee, settings)
    assert len(asked) == 20 and {r.key for r in asked} <= {r.key for r in requests_of(tinysee, settings)}
    sample = [
        (r, Reply(r.key, "ok", "B", tokens_in=90 if r.pictures else 40, tokens_out=2, latency=0.5)) for r in asked
    ]
    known = forecast(tinysee, settings, sample=sample, concurrency=4)
    assert (known.tokens_in, known.tokens_out, known.price) == (300 * 130, 1200, None)
    assert known.seconds == pytest.approx(600 * 0.5 / 4) and known.basis == "20 replies"
    assert forecast(tinysee, settings, sample=sample, rate=100).seconds == pytest.approx(6)


def test_settings_are_checked():
    for bad in ({"conditions": ("x",)}, {"prompt_mode": "x"}, {"samples": 0}, {"wrong_image": "x"}, {"layout": "x"}):
        with pytest.raises(ValueError):
            RunSettings("m", **bad)


def test_letters_of_a_request(tinysee):
    request = next(requests_of(tinysee, RunSettings("m", ("blind",))))
    assert request.letters == "ABCD" and isinstance(tinysee[0].pictures[0], Picture)
