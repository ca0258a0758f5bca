"""An experiment tells answers of one reranker from those of another, and prices its calls."""

from graphrag_evaluation.pricing import _reranking
from graphrag_evaluation.running import _found_by

from graphrag_pipeline.core.settings import Settings


def test_an_evaluated_answer_depends_on_its_reranker():
    values = {"top_k": 10, "reranked": 40}
    off = Settings()
    local, llm = (Settings(query={"reranker": name}) for name in ("local:some/model", "llm"))
    assert _found_by(off, values) == {"top_k": 10}
    assert _found_by(llm, {**values, "reranked": 0}) == {"top_k": 10}
    assert _found_by(local, values) != _found_by(llm, values) != _found_by(off, values)


def test_what_a_model_reranks_has_a_price_before_it_is_asked():
    model_asked, local = (
        Settings(query={"reranker": "llm"}),
        Settings(query={"reranker": "local:x"}),
    )
    calls, prompt, completion = _reranking(model_asked, {"reranked": 40})
    assert (calls, prompt > 4000, completion > 0) == (1, True, True)
    assert _reranking(model_asked, {"reranked": 0}) == _reranking(model_asked, {}) == (0, 0, 0)
    assert _reranking(local, {"reranked": 40}) == (0, 0, 0)
