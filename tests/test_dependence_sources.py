"""Where a structural prior comes from. Oracles: the core's own constructors, softmax by hand, a tiny random encoder."""

from __future__ import annotations

import importlib.util
import io
import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from auditlib.dependence import encoders, sources
from auditlib.dependence.source_files import make_embeddings, read_embeddings
from auditlib.dependence.structure import StructuralPrior
from auditlib.errors import AuditError
from auditlib.synth.modality import simulate_modality

N = 60
IDS = [f"q{i}" for i in range(N)]


@pytest.fixture(scope="module")
def drawn():
    return simulate_modality(5, items=N)


def arrays(drawn):
    return {"visual": drawn.visual, "textual": drawn.textual, "options": drawn.options}


def test_three_kinds_of_files_give_the_same_vectors(drawn, tmp_path):
    a = arrays(drawn)
    np.savez(tmp_path / "e.npz", item=np.array(IDS), **a)
    table = pd.DataFrame({"item": IDS, "visual": list(drawn.visual), "textual": list(drawn.textual),
                          "options": [[list(o) for o in x] for x in drawn.options]})  # fmt: skip
    table.to_parquet(tmp_path / "e.parquet")
    for name, x in a.items():
        np.save(tmp_path / f"{name}.npy", x)
    npz, parquet, npy = (
        read_embeddings(files, IDS)
        for files in ([tmp_path / "e.npz"], [tmp_path / "e.parquet"], [tmp_path / f"{n}.npy" for n in a])
    )
    for found in (parquet, npy):
        assert found.items == npz.items == tuple(IDS)
        for name in a:
            np.testing.assert_allclose(getattr(found, name), a[name])


def damaged(tmp_path, drawn, kind):
    file = tmp_path / "bad.npz"
    a = arrays(drawn) | {"item": np.array(IDS)}
    if kind == "lacks":
        del a["textual"]
    elif kind == "objects":
        a["item"] = np.array(IDS, dtype=object)
    elif kind == "shape":
        a["visual"] = a["visual"][:-1]
    elif kind == "nan":
        a["visual"] = a["visual"].copy()
        a["visual"][3, 0] = np.nan
    elif kind == "twice":
        a["item"] = np.array(["q0", *IDS[:-1]])
    np.savez(file, **a)
    if kind == "cut":
        file.write_bytes(file.read_bytes()[:200])
    return [file]


@pytest.mark.parametrize(
    ("kind", "says"),
    [("lacks", "no array 'textual'"), ("objects", "Python objects"), ("shape", "shape .* for 60 items"),
     ("nan", "first q3"), ("twice", "'q0' stands twice"), ("cut", "not readable as numpy")],
)  # fmt: skip
def test_damaged_arrays_are_named(drawn, tmp_path, kind, says):
    with pytest.raises(AuditError, match=says) as e:
        read_embeddings(damaged(tmp_path, drawn, kind), IDS)
    assert "bad.npz" in str(e.value)


def test_files_of_other_kinds_are_refused(tmp_path):
    with pytest.raises(AuditError, match="no such file"):
        read_embeddings([tmp_path / "none.npz"], IDS)
    with pytest.raises(AuditError, match=r"no textual\.npy"):
        read_embeddings([tmp_path / "visual.npy"], IDS)
    with pytest.raises(AuditError, match="2 files of embeddings"):
        read_embeddings([tmp_path / "a.npz", tmp_path / "b.npz"], IDS)


def test_prior_of_some_items_is_the_core_s_and_says_nothing_of_others(drawn):
    half = slice(0, N, 2)
    found = make_embeddings(IDS[half], drawn.visual[half], drawn.textual[half], drawn.options[half])
    prior = sources.prior_from_embeddings(found, IDS, drawn.key, drawn.k)
    own = StructuralPrior.from_embeddings(drawn.visual[half], drawn.textual[half], drawn.options[half], drawn.key[half])
    np.testing.assert_allclose(prior.profile[half], own.profile)
    np.testing.assert_allclose(prior.probability[half], own.probability)
    assert (prior.weight[1::2] == 0).all() and (prior.profile[1::2] == 0.25).all()
    assert np.isnan(prior.information[1::2]).all()


def test_items_without_a_letter_key_get_no_prior(drawn):
    found = make_embeddings(IDS, **arrays(drawn))
    key = np.where(np.arange(N) < 5, -2, drawn.key)
    prior = sources.prior_from_embeddings(found, IDS, key, drawn.k)
    assert (prior.weight[:5] == 0).all() and (prior.weight[5:] > 0).any()
    with pytest.raises(AuditError, match="0 items have vectors"):
        sources.prior_from_embeddings(found, IDS, np.full(N, -2), drawn.k)
    with pytest.raises(AuditError, match="there are vectors of 4"):
        sources.prior_from_embeddings(found, IDS, drawn.key, np.where(np.arange(N) == 7, 5, 4))
    with pytest.raises(AuditError, match=r"no id .*pool: 'x'"):
        sources.prior_from_embeddings(found, ["x"] * 3, [0] * 3, [4] * 3)


def test_probabilities_of_a_table(tmp_path, rng):
    p = rng.uniform(0.1, 0.9, (N, 4))
    table = pd.DataFrame(p, columns=["none", "image_only", "blind", "full"])
    table.insert(0, "item", IDS)
    order = rng.permutation(N)
    table.iloc[order].to_csv(tmp_path / "p.csv", index=False)
    np.savez(tmp_path / "p.npz", item=np.array(IDS), none=p[:, 0], image_only=p[:, 1], blind=p[:, 2], full=p[:, 3])
    own = StructuralPrior.from_probs(p, 4)
    for file in ("p.csv", "p.npz"):
        np.testing.assert_allclose(sources.prior_from_probabilities(tmp_path / file, IDS, np.full(N, 4)).profile,
                                   own.profile)  # fmt: skip
    table.loc[4, "blind"] = 1.2
    table.to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(AuditError, match="row 6: a probability is below 0 or above 1"):
        sources.prior_from_probabilities(tmp_path / "p.csv", IDS, np.full(N, 4))
    table.astype({"blind": object}).assign(blind=["x", *["0.5"] * (N - 1)]).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(AuditError, match="'x', which is no number"):
        sources.prior_from_probabilities(tmp_path / "p.csv", IDS, np.full(N, 4))


def test_labels_of_a_table(tmp_path):
    pd.DataFrame({"item": ["q2", "q0", "q1"], "label": ["s", "R", ""]}).to_csv(tmp_path / "l.csv", index=False)
    prior = sources.prior_from_labels(tmp_path / "l.csv", IDS[:4], trust=0.7)
    np.testing.assert_allclose(prior.profile[0], [0.7, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(prior.profile[2], [0.1, 0.1, 0.1, 0.7])
    assert (prior.weight > 0).tolist() == [True, False, True, False]
    wide = pd.DataFrame({"item": IDS[:2], "R": [0.25, 0.5], "V": [0.25, 0], "T": [0.25, 0], "S": [0.25, 0.499]})
    wide.to_csv(tmp_path / "w.csv", index=False)
    prior = sources.prior_from_labels(tmp_path / "w.csv", IDS[:2])
    np.testing.assert_allclose(prior.profile[1], [0.5, 0, 0, 0.5], atol=1e-3)
    # counts, or a row that misses 1 by more than rounding, are not rescaled
    wide.assign(S=[0.25, 0.8]).to_csv(tmp_path / "w.csv", index=False)
    with pytest.raises(AuditError, match=r"row 3: R, V, T and S of the row sum to 1\.3"):
        sources.prior_from_labels(tmp_path / "w.csv", IDS[:2])
    pd.DataFrame({"item": ["q0"], "label": ["Q"]}).to_csv(tmp_path / "l.csv", index=False)
    with pytest.raises(AuditError, match="unknown structure label 'Q'"):
        sources.prior_from_labels(tmp_path / "l.csv", IDS)


def logprob_rows(models=("judge",)):
    said = {"A": [-0.1, False], "B": [-2.5, False], "C": [-4.0, True]}
    rows = []
    for model in models:
        for item in IDS[:3]:
            for j, c in enumerate(("none", "image_only", "blind", "full")):
                if item == "q2" and c == "blind":
                    continue
                shifted = {k: [v[0] - 0.3 * j * (k != "A"), v[1]] for k, v in said.items()}
                rows.append({"item": item, "model": model, "condition": c, "letter_logprobs": json.dumps(shifted)})
    return pd.DataFrame(rows)


def test_log_probabilities_of_a_scorer(tmp_path):
    logprob_rows().to_parquet(tmp_path / "r.parquet")
    prior = sources.prior_from_logprobs(tmp_path / "r.parquet", IDS[:4], [0, 1, 0, 0], [3] * 4, evaluated=["m"])
    raw = np.exp([-0.1, -2.5 - 0.9, -4.0 - 0.9])
    assert prior.probability[0, 3] == pytest.approx(raw[0] / raw.sum())
    assert prior.probability[1, 3] == pytest.approx(raw[1] / raw.sum())
    assert np.isnan(prior.probability[2:]).all(), "q2 lacks a condition, q3 all of them"


def test_scorer_is_no_model_of_the_pool(tmp_path):
    file = tmp_path / "r.parquet"
    logprob_rows(("a", "b")).to_parquet(file)
    with pytest.raises(AuditError, match=r"2 models.*name one"):
        sources.prior_from_logprobs(file, IDS[:3], [0] * 3, [3] * 3)
    with pytest.raises(AuditError, match="'a' is a model of the pool"):
        sources.prior_from_logprobs(file, IDS[:3], [0] * 3, [3] * 3, scorer="a", evaluated=["a"])
    with pytest.raises(AuditError, match="no scorer 'c'"):
        sources.prior_from_logprobs(file, IDS[:3], [0] * 3, [3] * 3, scorer="c")
    pd.DataFrame({"item": ["q0"], "condition": ["full"]}).to_parquet(file)
    with pytest.raises(AuditError, match="no column 'letter_logprobs'"):
        sources.prior_from_logprobs(file, IDS[:3], [0] * 3, [3] * 3)


# --------------------------------------------------------------------------------------------------- encoders


class Counting:
    """An encoder of two numbers: mean brightness and length of the text."""

    def pictures(self, pictures):
        return np.array([[np.asarray(p).mean(), 1.0] for p in pictures])

    def texts(self, texts):
        return np.array([[len(t), 1.0] for t in texts])


def png(level):
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (level, level, level)).save(out, "PNG")
    return out.getvalue()


def test_items_are_embedded_in_their_own_places():
    pictures = {"a": png(10), "c": png(30)}
    found, left_out = encoders.encode_items(["a", "b", "c", "d"], ["one", "two", "three!", "four"],
                                            [["x", "yy"], ["x", "y"], ["zzz", "y", "ww"], ["x"]], pictures,
                                            Counting())  # fmt: skip
    assert found.items == ("a", "c") and left_out == ["b", "d"]
    assert found.visual[:, 0].tolist() == [10, 30] and found.textual[:, 0].tolist() == [3, 6]
    assert found.options[:, :, 0].tolist() == [[1, 2, 0], [3, 1, 2]]
    with pytest.raises(AuditError, match="picture of item a"):
        encoders.encode_items(["a"], ["q"], [["x", "y"]], {"a": b"no picture"}, Counting())
    with pytest.raises(AuditError, match="no item has both"):
        encoders.encode_items(["a"], ["q"], [["x", "y"]], {}, Counting())


def test_missing_library_is_said():
    if importlib.util.find_spec("transformers") is not None:
        pytest.skip("transformers is installed")
    with pytest.raises(AuditError, match=r"package transformers, which is not installed.*give the vectors as a file"):
        encoders.image_text_encoder("anything")


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory):
    """A CLIP of random weights with a byte-level vocabulary, saved as the library saves one."""
    pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("clip")
    letters = [chr(c) for c in range(97, 123)]
    names = [*letters, *(x + "</w>" for x in letters), "ab</w>", "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {t: i for i, t in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    tokenizer = transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        text_config=size | {"vocab_size": len(names), "max_position_embeddings": 12, "bos_token_id": len(names) - 2,
                            "eos_token_id": len(names) - 1},
        vision_config=size | {"image_size": 16, "patch_size": 8}, projection_dim=8,
    )  # fmt: skip
    transformers.set_seed(0)
    transformers.CLIPModel(config).save_pretrained(folder)
    images = transformers.CLIPImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    transformers.CLIPProcessor(image_processor=images, tokenizer=tokenizer).save_pretrained(folder)
    return folder


def test_clip_kind_of_model_embeds_pictures_and_texts(tiny_clip):
    encoder = encoders.image_text_encoder(str(tiny_clip))
    found, _ = encoders.encode_items(["a", "b"], ["cat", "a very long text " * 20], [["dog", "cat"], ["cat", "bird"]],
                                     {"a": png(0), "b": png(255)}, encoder)  # fmt: skip
    assert found.visual.shape == found.textual.shape == (2, 8) and found.options.shape == (2, 2, 8)
    np.testing.assert_allclose(np.linalg.norm(found.visual, axis=1), 1)
    np.testing.assert_allclose(found.options[0, 1], found.options[1, 0], atol=1e-6)
    np.testing.assert_allclose(found.textual[0], found.options[0, 1], atol=1e-6)
    assert not np.allclose(found.visual[0], found.visual[1])


def test_sentence_encoder_takes_the_mean_over_tokens(tiny_clip):
    import torch
    import transformers

    folder = tiny_clip / "text"
    config = transformers.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=16)  # fmt: skip
    model = transformers.BertModel(config)
    model.save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "blue", "boat"]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    found = encoders.sentence_encoder(str(folder)).texts(["red boat", "red boat blue blue"])
    ids = torch.tensor([[2, 5, 7, 3]])
    with torch.inference_mode():
        want = model.eval()(input_ids=ids).last_hidden_state.mean(1).numpy()[0]
    np.testing.assert_allclose(found[0], want / np.linalg.norm(want), atol=1e-5)


def test_model_that_is_none_is_said(tiny_clip, tmp_path):
    with pytest.raises(AuditError, match="cannot be loaded"):
        encoders.image_text_encoder(str(tmp_path))
