"""Several models: each role asks the one that the settings name, and only that one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from model_server import Fault, ModelServer
from test_llm_pipeline import FILES, mind

from conftest import Engine
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.model_settings import ROLES
from graphrag_pipeline.core.ownership import check_values
from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.llm import BudgetExceededError, TerminalModelError, calls_since
from graphrag_pipeline.llm.configured import all_prices, model_of, model_options, model_prices

OPENAI = "https://api.openai.com/v1"
NEAR = "http://localhost:8081/v1"
SECTIONS = f"""
[llm]
model = "small"
temperature = 0.5
[models.chat]
base_url = "http://localhost:8080/v1"
model = "middle"
[models.vectors]
base_url = "{NEAR}"
model = "bge"
[models.strong]
model = "large"
prices = {{ input = 2, output = 8 }}
[roles]
answers = "strong"
judging = "llm"
"""


def loaded(folder: Path, toml: str) -> Settings:
    (folder / "graphrag.toml").write_text(toml)
    return load_settings(folder / "graphrag.toml")


def test_a_role_has_the_model_it_names_or_chat_or_vectors_or_that_of_llm(tmp_path: Path) -> None:
    settings = loaded(tmp_path, SECTIONS)
    assert {role: model_of(settings, role) for role in ROLES} == {
        **dict.fromkeys(("extraction", "summaries", "reports"), "middle"),
        "answers": "large",
        "judging": "small",
        "embeddings": "bge",
    }
    assert {model_options(settings, role).temperature for role in ROLES} == {0.5}
    assert model_options(settings, "reports").endpoint == "http://localhost:8080/v1"
    alone = loaded(tmp_path, '[llm]\nmodel = "small"')
    assert {model_options(alone, role) for role in ROLES} == {model_options(alone, "answers")}


def test_a_key_goes_to_the_address_that_it_was_given_for_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("THEIRS", "sk-of-theirs")
    own = f'[models.own]\nbase_url = "{NEAR}"\napi_key_env = "THEIRS"\n[roles]\nreports = "own"'
    settings = loaded(tmp_path, f'[models.chat]\nbase_url = "{OPENAI}"\n{own}')
    keys = {role: model_options(settings, role).connection()[1] for role in ("answers", "reports")}
    assert keys == {"answers": "sk-of-openai", "reports": "sk-of-theirs"}
    for llm, key in (("", "none"), (f'base_url = "{NEAR}"', "sk-of-openai")):
        settings = loaded(tmp_path, f'[llm]\n{llm}\n[models.chat]\nbase_url = "{NEAR}"')
        assert model_options(settings, "answers").connection()[1] == key
    # A model at OpenAI is not sent the key of another server.
    settings = loaded(
        tmp_path, f'[llm]\napi_key_env = "THEIRS"\n[models.chat]\nbase_url = "{OPENAI}"'
    )
    with pytest.raises(ConfigError, match="no key for the model"):
        model_options(settings, "answers").connection()


def test_a_file_of_somebody_else_that_would_send_our_key_to_one_of_its_models_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    model = {"base_url": "https://evil.example/v1", "api_key_env": "AWS_SECRET_ACCESS_KEY"}
    said = "would send your AWS_SECRET_ACCESS_KEY to https://evil.example"
    with pytest.raises(ConfigError, match=said):
        check_values(tmp_path / "graphrag.toml", "mallory", {"models": {"chat": model}})
    del model["api_key_env"]
    check_values(tmp_path / "graphrag.toml", "mallory", {"models": {"chat": model}})


def test_the_environment_sets_and_completes_models_and_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "MODELS__STRONG__EXTRA": '{"seed": 7}',
        "MODELS__STRONG__CONCURRENCY": "2",
        "MODELS__VECTORS__MODEL": "gte",
        "ROLES__REPORTS": "strong",
    }.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    settings = loaded(tmp_path, SECTIONS)
    strong, vectors = settings.llm_for("reports"), model_options(settings, "embeddings")
    assert (strong.model, strong.extra, strong.concurrency) == ("large", {"seed": 7}, 2)
    assert (vectors.embedding_model, vectors.endpoint) == ("gte", NEAR)
    again = Settings(**settings.model_dump(mode="json"))
    assert again == settings == Settings.exactly(settings.as_set())
    assert again.llm_for("reports") == strong


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('[models.big]\n[roles]\nanswers = "bgi"', "answers = 'bgi': there is no such model: did"),
        ('[roles]\nanswers = "zzz"', "there is no such model: write a section [models.zzz]"),
        ('[roles]\nanswer = "llm"', "unknown setting roles.answer: did you mean roles.answers?"),
        ('[models.a]\nmodle = "x"', "setting models.a.modle: did you mean models.a.model?"),
        ("[models.a]\nmax_cost = 1", "models.a.max_cost: it is for all models: set llm.max_cost"),
        ('[models.a]\nembedding_model = "x"', "did you mean models.a.model?"),
        ("[models.Big]\n", "[models.Big]: the name must be lower-case letters"),
        ("[models.llm]\n", "[models.llm]: the name must be"),
        ("[models]\na = 5", "models.a = 5: must be a section, [models.a], with settings"),
        ('[models.a]\napi_key_env = "sk-1"', "models.a.api_key_env = (not shown)"),
        ("[models.a]\nextra = { stream = true }", "models.NAME.extra must not hold stream"),
        ("[models.a]\nprices = { input = 1, otput = 1 }", "unknown setting models.a.prices.otput"),
    ],
)
def test_a_wrong_model_or_role_is_one_line_that_says_what_is_right(
    tmp_path: Path, toml: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, toml)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "sk-1" not in str(caught.value)


def test_an_unknown_variable_of_a_model_suggests_the_close_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRAPHRAG_MODELS__CHAT__BASE_ULR", "x")
    with pytest.raises(ConfigError, match="did you mean GRAPHRAG_MODELS__CHAT__BASE_URL"):
        load_settings()


def test_a_model_costs_what_its_section_says(tmp_path: Path) -> None:
    settings = loaded(tmp_path, SECTIONS)
    million = 1_000_000
    assert model_prices(settings, "answers").cost("large", million, million) == 10
    assert all_prices(settings).cost("large", million, million) == 10
    assert model_prices(settings, "embeddings").cost("bge", million, 0) == 0
    assert model_prices(settings, "judging").cost("small", million, 0) is None


@pytest.fixture
def servers() -> Iterator[dict[str, ModelServer]]:
    with ExitStack() as stack:
        names = ("cheap", "strong", "vectors")
        yield {name: stack.enter_context(ModelServer(mind)) for name in names}


def settings_of(folder: Path, servers: dict[str, ModelServer], **given: Any) -> Settings:
    models = {
        name: {"base_url": server.base_url, "model": f"{name}-model", "retry_seconds": 0.01}
        for name, server in servers.items()
    }
    roles = dict.fromkeys(("extraction", "summaries"), "cheap")
    roles |= {"reports": "strong", "answers": "strong", **given.pop("roles", {})}
    return Settings(
        home=str(folder / ".graphrag"), profile="llm", models=models, roles=roles, **given
    )


def asked(server: ModelServer) -> set[tuple[str, str]]:
    """Return the endpoints of a server that were asked, and the models that were named."""
    return {(request.endpoint, request.body["model"]) for request in server.requests}


def test_each_stage_asks_its_own_model_and_another_for_answers_asks_nothing_again(
    tmp_path: Path, servers: dict[str, ModelServer]
) -> None:
    settings = settings_of(tmp_path, servers)
    engine = Engine(tmp_path, settings)
    engine.write(FILES)
    index = Index(settings)
    index.update(engine.inbox)
    index.answer("Who met Alice Smith?", "local")
    assert asked(servers["cheap"]) == {("chat/completions", "cheap-model")}
    assert asked(servers["strong"]) == {("chat/completions", "strong-model")}
    assert asked(servers["vectors"]) == {("embeddings", "vectors-model")}
    probes = [r for r in servers["strong"].requests if "are you there" in r.text]
    reports = [r for r in servers["strong"].requests if "community of" in r.text]
    assert len(probes) == 1
    assert len(servers["strong"].requests) == len(reports) + len(probes) + 1
    for server in servers.values():
        server.forget()
    other = settings_of(tmp_path, servers, roles={"answers": "cheap"})
    Index(other).update(engine.inbox)
    assert [request for server in servers.values() for request in server.requests] == []


def test_a_model_that_cannot_do_its_part_is_told_of_before_the_first_chunk_is_extracted(
    tmp_path: Path, servers: dict[str, ModelServer]
) -> None:
    words = "This server does not support embeddings. Start it with `--embeddings`"
    servers["vectors"].misbehave(lambda request: Fault(501, {"code": 501, "message": words}))
    settings = settings_of(tmp_path, servers)
    engine = Engine(tmp_path, settings)
    engine.write(FILES)
    index = Index(settings)
    with pytest.raises(TerminalModelError) as caught:
        index.update(engine.inbox)
    text, address = str(caught.value), servers["vectors"].base_url
    for part in ("vectors-model", "[models.vectors]", "embeddings", address, words):
        assert part in text
    assert caught.value.is_outage
    assert servers["cheap"].requests == []
    assert len(servers["strong"].requests) == 1
    assert len(servers["vectors"].requests) == 1
    # Once it can, another run goes on, and asks once more whether all are there.
    servers["vectors"].misbehave(())
    index.update(engine.inbox)
    assert sum("are you there" in r.text for r in servers["strong"].requests) == 2


def test_vectors_asked_for_before_are_asked_for_again_before_a_later_run_pays_for_a_text(
    tmp_path: Path, servers: dict[str, ModelServer]
) -> None:
    settings = settings_of(tmp_path, servers)
    engine = Engine(tmp_path, settings)
    engine.write(FILES)
    Index(settings).update(engine.inbox)
    engine.write({"new.txt": "Carol Jones met Alice Smith in Berlin, and they founded a choir."})
    for server in servers.values():
        server.forget()
    servers["vectors"].misbehave(lambda request: Fault(501, {"code": 501, "message": "no vectors"}))
    with pytest.raises(TerminalModelError, match=r"vectors-model .* cannot be used: .*no vectors"):
        Index(settings).update(engine.inbox)
    assert servers["cheap"].requests == []
    assert len(servers["vectors"].requests) == 1


def test_what_a_run_spends_is_limited_over_all_its_models(
    tmp_path: Path, servers: dict[str, ModelServer]
) -> None:
    settings = settings_of(tmp_path, servers, llm={"max_tokens": 4000})
    engine = Engine(tmp_path, settings)
    engine.write(FILES)
    with pytest.raises(BudgetExceededError):
        Index(settings).update(engine.inbox)
    calls = calls_since(settings.home_path)
    assert calls["prompt_tokens"].sum() + calls["completion_tokens"].sum() <= 4000
    assert calls["model"].n_unique() > 1
