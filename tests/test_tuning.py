"""Prompts tuned to a corpus."""

import json
import tomllib

import pytest
from model_server import ModelServer

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.prompting import check_prompts, load_examples, load_prompt
from graphrag_pipeline.core.settings import LlmSettings, Settings
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.planning.tuning import DOMAIN, tune

RECORDS = (
    '("entity"<|>Marta Kolb<|>KEEPER<|>Marta Kolb keeps the light {{document}})\n##\n'
    '("entity"<|>Cape Orn<|>PLACE<|>Cape Orn has a light)\n##\n'
    '("relationship"<|>Marta Kolb<|>Cape Orn<|>Marta Kolb keeps the light of Cape Orn<|>8)'
)


def answer(messages):
    said = messages[0]["content"]
    if "entity_types" in said:
        return json.dumps({"entity_types": ["keeper", "place", "keeper"]})
    if "Write only what the text says" in said:
        return f"Here they are:\n{RECORDS}\n<|COMPLETE|>"
    if "what field" in said:
        return "records of {{context}} lighthouses\n=== user ==="
    return "Dutch" if "Name in English the language" in said else "You are a keeper."


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.txt").write_text(f"Marta Kolb keeps the light of Cape Orn. {number}")
    return folder


@pytest.fixture
def tuned(tmp_path, corpus, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with ModelServer(answer) as server:
        settings = Settings(home=str(tmp_path / "home"), llm=LlmSettings(base_url=server.base_url))
        yield settings, tune(settings, corpus, tmp_path / "prompts")


def test_what_is_proposed_becomes_files_that_are_valid_prompts(tuned, tmp_path):
    _, found = tuned
    folder = tmp_path / "prompts"
    check_prompts(folder)
    assert found.entity_types == ("keeper", "place")
    assert found.n_examples == 3
    assert "You are a keeper." in load_prompt("community_report", folder).system
    assert load_examples(DOMAIN, folder).count("keeps the light of Cape Orn)") == 3


def test_the_settings_it_writes_can_be_read(tuned, tmp_path):
    written = tomllib.loads((tmp_path / "prompts" / "settings.toml").read_text())
    assert written["extraction"] == {"entity_types": ["keeper", "place"], "domain": DOMAIN}
    assert Settings(**written).llm.prompts == str(tmp_path / "prompts")


def test_what_the_model_names_cannot_break_the_settings_file(tmp_path, corpus, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    odd = ["ship\\captain", 'a "quoted" kind', "två\x00\x7f\nord"]

    def named(messages):
        asked = messages[0]["content"]
        return json.dumps({"entity_types": odd}) if "entity_types" in asked else answer(messages)

    with ModelServer(named) as server:
        settings = Settings(home=str(tmp_path / "home"), llm=LlmSettings(base_url=server.base_url))
        tune(settings, corpus, tmp_path / "prompts")
    written = tomllib.loads((tmp_path / "prompts" / "settings.toml").read_text())
    assert written["extraction"]["entity_types"] == ["ship\\captain", 'a "quoted" kind', "två ord"]


def test_entity_types_that_cannot_be_read_are_asked_for_anew(tmp_path, corpus, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    unwilling = True

    def moody(messages):
        is_again = "could not be read" in messages[-1]["content"]
        if "entity_types" in messages[0]["content"] and (unwilling or not is_again):
            return "keepers and places"
        if is_again:
            return json.dumps({"entity_types": ["keeper"]})
        return answer(messages)

    with ModelServer(moody) as server:
        settings = Settings(home=str(tmp_path / "home"), llm=LlmSettings(base_url=server.base_url))
        with pytest.raises(ModelOutputError):
            tune(settings, corpus, tmp_path / "prompts")
        unwilling = False
        assert tune(settings, corpus, tmp_path / "prompts").entity_types == ("keeper",)


def test_prompts_that_are_there_are_not_overwritten(tuned, tmp_path, corpus):
    settings, _ = tuned
    with pytest.raises(InputError, match="holds prompts already"):
        tune(settings, corpus, tmp_path / "prompts")


def test_a_folder_without_documents_is_one_clear_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no document that can be read"):
        tune(Settings(home=str(tmp_path / "home")), tmp_path / "empty", tmp_path / "prompts")
