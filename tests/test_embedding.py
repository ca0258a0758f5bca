import os
import subprocess
import sys
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_model import minilm

from graphrag_pipeline.llm.embedders import (
    DEFAULT_DIMENSIONS,
    EmbeddingError,
    HashingEmbedder,
    SentenceTransformerEmbedder,
    make_embedder,
    sentence_transformers,
)

MUSIQUE = Path(__file__).resolve().parents[2] / "shared" / "data" / "musique"
TEXTS = ["The river Thames in London", "Marie Curie won 2 Nobel prizes", "", "the of", "東京 tower"]


def signs(vectors):
    return blake2b(np.sign(vectors).astype(np.int8).tobytes(), digest_size=8).hexdigest()


@given(st.lists(st.text(), max_size=8))
def test_every_text_has_a_vector_of_length_one(texts):
    vectors = HashingEmbedder(64).embed(texts)
    assert vectors.shape == (len(texts), 64)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


@settings(max_examples=30)
@given(st.lists(st.text(st.sampled_from("abc d一 é")), max_size=8), st.text())
def test_a_vector_does_not_depend_on_the_texts_around_it(texts, text):
    embedder = HashingEmbedder(32)
    alone = embedder.embed([text])[0]
    np.testing.assert_array_equal(embedder.embed([*texts, text])[-1], alone)


def test_blocks_of_a_large_batch_are_embedded_like_single_texts():
    texts = [f"passage {i} of river {i % 7}" for i in range(2500)]
    embedder = HashingEmbedder(64)
    vectors = embedder.embed(texts)
    for i in (0, 1023, 1024, 2499):
        np.testing.assert_array_equal(vectors[i], embedder.embed([texts[i]])[0])


def test_vectors_are_the_same_in_another_process():
    code = (
        "import sys, numpy as np; from graphrag_pipeline.llm.embedders import HashingEmbedder;"
        f"sys.stdout.buffer.write(HashingEmbedder().embed({TEXTS!r}).tobytes())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert done.stdout == HashingEmbedder().embed(TEXTS).tobytes()


def test_vectors_of_this_version_never_change_without_a_new_name():
    embedder = HashingEmbedder()
    assert (embedder.name, signs(embedder.embed(TEXTS))) == (
        f"hashing-v1-{DEFAULT_DIMENSIONS}",
        "c2dbc91e86db4b7d",
    ), "vectors changed: raise _HASHING_VERSION, so that stored vectors are made again"


def test_texts_without_terms_are_alike_and_like_nothing_else():
    vectors = HashingEmbedder().embed(TEXTS)
    similarity = vectors @ vectors.T
    assert similarity[2, 3] == 1
    assert not similarity[2, [0, 1, 4]].any()


def test_a_text_is_nearest_to_the_one_that_shares_its_rare_words():
    texts = ["Where did Marie Curie live?", "Curie worked in Paris", "Where people first live"]
    question, rare, common = HashingEmbedder().embed(texts)
    assert question @ rare > question @ common


def test_repeating_a_text_hardly_turns_its_vector():
    once, twice = HashingEmbedder().embed(["river Thames", "river Thames river Thames"])
    np.testing.assert_allclose(once, twice, atol=1e-6)


def test_names_tell_kinds_and_dimensions_apart():
    assert make_embedder("hashing").dimensions == DEFAULT_DIMENSIONS
    embedders = [make_embedder("hashing", dimensions=d) for d in (256, 512)]
    assert [e.dimensions for e in embedders] == [256, 512]
    embedders.append(make_embedder("local", model="some/model"))
    embedders.append(make_embedder("local", model="some/model", dimensions=64))
    assert len({e.name for e in embedders}) == 4


def test_a_model_folder_is_named_by_its_content_and_not_its_place(tmp_path):
    for place, content in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / place / "model").mkdir(parents=True)
        (tmp_path / place / "model" / "config.json").write_text(content)
    a, b, c = (SentenceTransformerEmbedder(str(tmp_path / p / "model")).name for p in "abc")
    assert a == b != c


def test_what_cannot_be_made_is_refused_with_the_remedy():
    with pytest.raises(EmbeddingError, match="give its name or folder"):
        make_embedder("local")
    with pytest.raises(EmbeddingError, match="'hashing' or 'local'"):
        make_embedder("other")  # pyright: ignore[reportArgumentType]
    with pytest.raises(EmbeddingError, match="at least 2"):
        HashingEmbedder(1)


def test_threads_of_a_local_model_sleep_while_they_wait_unless_the_environment_decides(monkeypatch):
    library = ModuleType("sentence_transformers")
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert sentence_transformers() is library
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    sentence_transformers()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


class ReadsLittle:
    """A model of sentence-transformers' interface: it drops all words after the first 16."""

    max_seq_length = 16

    def __init__(self, *_: object, **__: object) -> None:
        self.tokenizer = self
        self.read: list[str] = []

    def get_embedding_dimension(self):
        return 64

    def encode(self, texts, **options):
        if isinstance(texts, str):
            return ["[CLS]", *texts.split(), "[SEP]"]
        self.read += [word for text in texts for word in text.split()[: self.max_seq_length - 2]]
        return HashingEmbedder(64).embed(
            [" ".join(text.split()[: self.max_seq_length - 2]) for text in texts]
        )


@pytest.mark.parametrize("n_words", [1, 14, 15, 40, 1_000])
def test_a_text_longer_than_the_model_reads_is_read_to_its_end(monkeypatch, n_words):
    library = ModuleType("sentence_transformers")
    model = ReadsLittle()
    monkeypatch.setattr(library, "SentenceTransformer", lambda *_, **__: model, raising=False)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    text = " ".join(f"word{number}" for number in range(n_words))
    (vector,) = make_embedder("local", model="some/model").embed([text])
    assert model.read == text.split()
    np.testing.assert_allclose(np.linalg.norm(vector), 1.0, atol=1e-5)


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="it is installed")
def test_a_local_embedder_without_its_library_says_what_to_install():
    with pytest.raises(EmbeddingError, match=r"\[local\]"):
        make_embedder("local", model="some/model").embed(["text"])


def test_a_local_model_embeds_meaning(monkeypatch):
    model = minilm(monkeypatch)
    embedder = make_embedder("local", model=model)
    assert embedder.dimensions == 384
    vectors = embedder.embed(["a doctor", "a physician", "a volcano", ""])
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert embedder.embed([]).shape == (0, 384)
    assert make_embedder("local", model=model, dimensions=64).embed(["a"]).shape == (1, 64)
    with pytest.raises(EmbeddingError, match="384 dimensions"):
        _ = make_embedder("local", model=model, dimensions=1000).dimensions


@pytest.mark.shared_data
@pytest.mark.skipif(not MUSIQUE.is_dir(), reason="../shared/data is not beside the checkout")
def test_recall_of_gold_passages_stays_where_it_was_measured():
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
    from retrieval_quality import retrieval_quality  # pyright: ignore[reportMissingImports]

    rows = {row["method"]: row for row in retrieval_quality(MUSIQUE.parent)}
    assert rows[f"vectors: hashing-v1-{DEFAULT_DIMENSIONS}"]["recall@10"] > 0.53
    assert rows["full text (BM25)"]["recall@10"] > 0.57
