import json
import re
import tomllib

import pytest

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import ChunkSettings, Settings, fingerprint, load_settings
from graphrag_pipeline.core.settings_template import setting_rows, template
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.llm.configured import model_options
from graphrag_pipeline.sensors import check_crons


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def load(tmp_path, toml):
    file = tmp_path / "graphrag.toml"
    file.write_text(toml)
    return load_settings(file)


@pytest.mark.parametrize(
    ("toml", "setting", "value", "right"),
    [
        ("[chunks]\nsize = 0", "chunks.size", "0", "greater than or equal to 1"),
        ("[chunks]\nsize = 'x'", "chunks.size", "'x'", "integer"),
        ("[chunks]\nsize = 1.5", "chunks.size", "1.5", "integer"),
        ("[chunks]\nsize = 99999999999999999999", "chunks.size", "9999", "less than or equal to"),
        ("[chunks]\noverlap = -1", "chunks.overlap", "-1", "greater than or equal to 0"),
        ("[chunks]\noverlap = 700", "chunk overlap", "700", "smaller than chunk size (600)"),
        ("[chunks]\nencoding = 'cl99k'", "chunks.encoding", "'cl99k'", "cl100k_base"),
        ("chunks = 5", "chunks", "5", "must be a section, [chunks]"),
        ("home = 5", "home", "5", "string"),
        ("home = ''", "home", "''", "at least 1 character"),
        ("[input]\nfolder = ''", "input.folder", "''", "at least 1 character"),
        ("[input]\nmax_file_mb = 0", "input.max_file_mb", "0", "greater than 0"),
        ("[input]\nmax_file_mb = inf", "input.max_file_mb", "inf", "less than or equal to"),
        ("[input]\nmax_file_mb = nan", "input.max_file_mb", "nan", "less than or equal to"),
        ("[input]\nencoding = 'utf-9'", "input.encoding", "'utf-9'", "utf-8"),
        ("[input]\ntext_columns = 'text'", "input.text_columns", "'text'", "list"),
        ("[input]\ntext_columns = [1]", "input.text_columns.0", "1", "string"),
        ("[input]\nsettle_seconds = -1", "input.settle_seconds", "-1", "equal to 0"),
        ("[batches]\nmax_mb = -3", "batches.max_mb", "-3", "greater than 0"),
        ("[extraction]\nextractor = 'ai'", "extraction.extractor", "'ai'", "'llm' or 'import'"),
        ("[extraction]\nnoun_phrases = 3", "extraction.noun_phrases", "3", "boolean"),
        ("[communities]\nmax_cluster_size = 1", "communities.max_cluster_size", "1", "to 2"),
        ("[communities]\nseed = 18446744073709551616", "communities.seed", "1844", "less than"),
        ("[communities]\nresolution = 0", "communities.resolution", "0", "greater than 0"),
        ("[communities]\nlevels = 11", "communities.levels", "11", "less than or equal to 10"),
        ("[embeddings]\nembedder = 'big'", "embeddings.embedder", "'big'", "'local' or 'llm'"),
        ("[embeddings]\ndimensions = 16", "embeddings.dimensions", "16", "equal to 32"),
        ("[llm]\nextra = 'low'", "llm.extra", "'low'", "must be a table"),
        ("[llm]\nextra = {stream = true}", "llm.extra", "stream", "the pipeline sets it itself"),
        ("[llm]\nextra = {top_p = nan}", "llm.extra", "nan", "no infinite number"),
        ("[llm]\nretry_seconds = -1", "llm.retry_seconds", "-1", "equal to 0"),
        ("[llm]\nembedding_max_tokens = 0", "llm.embedding_max_tokens", "0", "equal to 1"),
        ("[query]\ntext_share = 1.5", "query.text_share", "1.5", "less than or equal to 1"),
        ("[query]\ntext_share = 0.9", "text_share", "0.9", "must not exceed 1"),
        ("[releases]\nkeep = 0", "releases.keep", "0", "greater than or equal to 1"),
    ],
)
def test_a_wrong_value_gives_one_line_that_names_setting_value_and_what_is_right(
    tmp_path, toml, setting, value, right
):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, toml)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(tmp_path / "graphrag.toml"))
    for part in (setting, value, right):
        assert part in message


def test_each_of_several_wrong_values_has_its_line(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "[chunks]\nsize = 0\noverlap = -1\n[releases]\nkeep = 'all'")
    assert [line.split(": ")[1].split(" = ")[0] for line in str(caught.value).splitlines()] == [
        "chunks.size",
        "chunks.overlap",
        "releases.keep",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "right"),
    [
        ("GRAPHRAG_CHUNKS__SIZE", "many", "integer"),
        ("GRAPHRAG_CHUNKS__SIZE", "", "integer"),
        ("GRAPHRAG_HOME", "", "at least 1 character"),
        ("GRAPHRAG_INPUT__TEXT_COLUMNS", "text,body", 'JSON, such as ["one", "other"]'),
        ("GRAPHRAG_LLM__EXTRA", "low", 'JSON, such as {"setting": "value"}'),
        ("GRAPHRAG_CHUNKS", "small", 'JSON, such as {"setting": "value"}'),
        ("GRAPHRAG_EXTRACTION__EXTRACTOR", "ai", "'llm' or 'import'"),
    ],
)
def test_a_wrong_value_of_the_environment_names_the_variable(monkeypatch, variable, value, right):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(variable)
    assert repr(value) in message
    assert right in message


def test_the_environment_beats_the_file_setting_by_setting(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_CHUNKS__SIZE", "300")
    monkeypatch.setenv("graphrag_query__top_k", "7")
    settings = load(tmp_path, "[chunks]\nsize = 400\noverlap = 50\n[query]\ntop_k = 5")
    assert (settings.chunks.size, settings.chunks.overlap) == (300, 50)
    assert settings.query.top_k == 7


def test_an_argument_beats_the_environment_and_the_environment_beats_the_file(
    tmp_path, monkeypatch
):
    file = tmp_path / "graphrag.toml"
    file.write_text("home = 'of the file'\n[chunks]\nsize = 400\noverlap = 50\nsentences = true")
    monkeypatch.setenv("GRAPHRAG_HOME", "of the environment")
    monkeypatch.setenv("GRAPHRAG_CHUNKS__SIZE", "300")
    monkeypatch.setenv("GRAPHRAG_CHUNKS__OVERLAP", "30")
    assert Settings().home == "of the environment"
    assert Settings(home="x").home == "x"
    assert Settings(chunks={"size": 200}).chunks == ChunkSettings(size=200, overlap=30)
    assert Settings(chunks=ChunkSettings(size=200)).chunks.overlap == 100
    settings = load_settings(file, home=tmp_path, chunks={"size": 200})
    assert settings.home_path == tmp_path
    assert settings.chunks == ChunkSettings(size=200, overlap=30, sentences=True)


def test_settings_alone_read_no_file(tmp_path):
    (tmp_path / "graphrag.toml").write_text("[query]\ntop_k = 4")
    assert Settings().query.top_k == 10
    assert load_settings(query={"level": 1}).query.top_k == 4


def test_settings_are_rebuilt_as_they_were_whatever_the_environment_says(tmp_path, monkeypatch):
    toml = '[llm]\nextra = { top_p = 0.5 }\n[input]\ntext_columns = ["a", "b"]'
    settings = load(tmp_path, f"profile = 'llm'\n[communities]\nseed = {2**64 - 1}\n{toml}")
    values = json.loads(json.dumps(settings.model_dump(mode="json")))
    for name, value in {"LLM__EXTRA": '{"seed": 7}', "CHUNKS__SIZE": "300", "HOME": "y"}.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    (tmp_path / "graphrag.toml").write_text("[query]\ntop_k = 1")
    assert Settings(**values) == settings


@pytest.mark.parametrize("values", [{"chunks": {"size": 0}}, {"chunks": {"overlap": 900}}])
def test_a_wrong_argument_is_the_programs_whatever_else_is_set(tmp_path, monkeypatch, values):
    monkeypatch.setenv("GRAPHRAG_CHUNKS__SENTENCES", "true")
    for make in (Settings, load_settings):
        with pytest.raises(ConfigError, match=r"^the settings of the program: chunk"):
            make(**values)


def test_a_wrong_value_in_a_list_of_the_environment_names_the_variable(monkeypatch):
    monkeypatch.setenv("GRAPHRAG_INPUT__TEXT_COLUMNS", "[1]")
    with pytest.raises(ConfigError, match=r"^GRAPHRAG_INPUT__TEXT_COLUMNS: input.text_columns.0"):
        load_settings()


def test_the_file_of_a_home_that_is_named_comes_first(tmp_path, monkeypatch):
    (tmp_path / "graphrag.toml").write_text("[query]\ntop_k = 2")
    monkeypatch.setenv("GRAPHRAG_CONFIG", str(tmp_path / "graphrag.toml"))
    (tmp_path / "home").mkdir()
    assert load_settings(home="home").query.top_k == 2
    (tmp_path / "home" / "graphrag.toml").write_text("home = 'elsewhere'\n[query]\ntop_k = 3")
    settings = load_settings(home="home")
    assert (settings.query.top_k, settings.home) == (3, "home")


def test_aliases_lie_here_beside_the_settings_file_or_in_the_home(tmp_path, monkeypatch):
    elsewhere, home = tmp_path / "elsewhere", tmp_path / ".graphrag"
    for folder in (elsewhere, home):
        folder.mkdir()
    (elsewhere / "graphrag.toml").write_text("")
    monkeypatch.setenv("GRAPHRAG_CONFIG", str(elsewhere / "graphrag.toml"))
    assert load_settings().aliases_path is None
    for folder in (home, elsewhere, tmp_path):
        (folder / "aliases.csv").write_text("action,a,b,note\n")
        settings = load_settings()
        assert settings.aliases_path == folder / "aliases.csv"
    monkeypatch.setenv("GRAPHRAG_RESOLUTION__ALIASES_FILE", "missing.csv")
    with pytest.raises(ConfigError, match="there is no such file"):
        print(load_settings().aliases_path)


def test_parameters_of_a_call_are_a_table_in_the_file_and_json_in_the_environment(
    tmp_path, monkeypatch
):
    settings = load(tmp_path, '[llm]\nextra = { reasoning_effort = "low", top_p = 0.5 }')
    assert settings.llm.extra == {"reasoning_effort": "low", "top_p": 0.5}
    monkeypatch.setenv("GRAPHRAG_LLM__EXTRA", '{"seed": 7}')
    assert load(tmp_path, "[llm]\nextra = { top_p = 0.5 }").llm.extra == {"seed": 7}
    monkeypatch.delenv("GRAPHRAG_LLM__EXTRA")
    with pytest.raises(ConfigError, match=r"llm\.extra\.day") as caught:
        load(tmp_path, "[llm]\nextra = { day = 2026-01-31 }")
    assert "\n" not in str(caught.value)


def test_values_of_file_and_environment_are_checked_together(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_CHUNKS__OVERLAP", "700")
    assert load(tmp_path, "[chunks]\nsize = 1000").chunks.overlap == 700
    with pytest.raises(ConfigError, match=r"overlap \(700\) must be smaller"):
        load(tmp_path, "")


@pytest.mark.parametrize(
    ("toml", "unknown", "close"),
    [
        ("[chunks]\nsise = 5", "chunks.sise", "did you mean chunks.size?"),
        ("[chunk]\nsize = 5", "chunk", "did you mean chunks?"),
        ("hme = 'x'", "hme", "did you mean home?"),
        ("[llm]\napi_key = 'x'", "llm.api_key", "no key stands in settings"),
        ("[query]\ntemperature = 1", "query.temperature", "did you mean llm.temperature?"),
        ("[query]\nsize = 3", "query.size", "did you mean chunks.size?"),
        ("[claims]\nenabled = true", "claims", "did you mean extraction.claims?"),
        ("[zzz]\nqqq = 5", "zzz", "remove it"),
    ],
)
def test_an_unknown_setting_suggests_the_close_one(tmp_path, toml, unknown, close):
    with pytest.raises(ConfigError, match=f"unknown setting {unknown}: {close[:-1]}"):
        load(tmp_path, toml)


@pytest.mark.parametrize(
    ("variable", "instead"),
    [
        ("GRAPHRAG_CHUNK__SIZE", "did you mean GRAPHRAG_CHUNKS__SIZE?"),
        ("GRAPHRAG_HIERARCHIES__SYNONYMS", "did you mean GRAPHRAG_EMBEDDINGS__SYNONYMS?"),
        ("GRAPHRAG_CLAIMS__ENABLED", "did you mean GRAPHRAG_EXTRACTION__CLAIMS?"),
        ("GRAPHRAG_LLM__API_KEY", "no key stands in settings: set OPENAI_API_KEY"),
        ("GRAPHRAG_MODELS__A__MAX_COST", "it is for all models: set GRAPHRAG_LLM__MAX_COST"),
        ("GRAPHRAG_QQQ__XXX", "remove it"),
    ],
)
def test_an_unknown_variable_suggests_the_close_one(monkeypatch, variable, instead):
    monkeypatch.setenv(variable, "5")
    with pytest.raises(ConfigError, match=re.escape(f"{variable}: {instead}")):
        load_settings()


def test_the_template_is_toml_that_changes_nothing(tmp_path):
    assert load(tmp_path, template()) == Settings()


def test_the_template_uncommented_equals_the_defaults(tmp_path):
    known = {name for _, name, _, _ in setting_rows()}
    lines = [
        line[1:] if line[1:].split(" = ")[0] in known else line for line in template().splitlines()
    ]
    toml = "\n".join(lines)
    values = tomllib.loads(toml)
    flat = {(group, name) for group, name, _, _ in setting_rows()}
    for group, name in flat:
        assert name in (values[group] if group else values)
    assert load(tmp_path, toml) == Settings()


def test_every_setting_has_a_description_and_its_default_can_be_given():
    for group, name, default, description in setting_rows():
        assert description.endswith("."), f"{group}.{name}"
        assert "\n" not in description
        assert json.dumps(default) is not None


def test_the_file_is_found_by_variable_then_here_then_in_the_home(tmp_path, monkeypatch):
    (tmp_path / ".graphrag").mkdir()
    (tmp_path / ".graphrag" / "graphrag.toml").write_text("[query]\ntop_k = 1")
    assert load_settings().query.top_k == 1
    (tmp_path / "graphrag.toml").write_text("[query]\ntop_k = 2")
    assert load_settings().query.top_k == 2
    (tmp_path / "other.toml").write_text("[query]\ntop_k = 3")
    monkeypatch.setenv("GRAPHRAG_CONFIG", "other.toml")
    assert load_settings().query.top_k == 3
    monkeypatch.setenv("GRAPHRAG_CONFIG", "missing.toml")
    with pytest.raises(ConfigError, match=r"missing\.toml, which is not a file"):
        load_settings()


@pytest.mark.parametrize("content", [b"[chunks", b"a = ", b"\xff\xfe\xfa", b"size == 3"])
def test_a_file_that_is_not_toml_gives_one_line(tmp_path, content):
    (tmp_path / "graphrag.toml").write_bytes(content)
    with pytest.raises(ConfigError, match="is not valid TOML") as caught:
        load_settings()
    assert "\n" not in str(caught.value)


def test_a_file_saved_by_a_windows_editor_is_read(tmp_path):
    (tmp_path / "graphrag.toml").write_bytes("\ufeff[query]\r\ntop_k = 4\r\n".encode())
    assert load_settings().query.top_k == 4


def test_settings_cannot_be_altered():
    with pytest.raises(ValueError, match="frozen"):
        Settings().chunks.size = 5


def test_a_fingerprint_depends_on_values_alone():
    assert fingerprint("a", ChunkSettings()) == fingerprint("a", ChunkSettings(size=600))
    assert fingerprint("a", ChunkSettings()) != fingerprint("a", ChunkSettings(size=601))
    assert fingerprint("a", "b") != fingerprint("ab")
    assert fingerprint({"x": 1, "y": 2}) == fingerprint({"y": 2, "x": 1})


def with_cron(cron: str, section: str = "schedule") -> Settings:
    name = {"schedule": "refresh_cron", "evaluation": "cron"}[section]
    return Settings.model_validate({section: {name: cron}})


@pytest.mark.parametrize(
    "cron",
    [
        "*/5 * * * *",
        "0 2 * * MON-FRI",
        "0 0 1,15 * *",
        "0-30/5 1-3 L jan sun",
        "5 4 * * 7",
        "@daily",
    ],
)
def test_cron_schedules_are_taken(cron):
    check_crons(with_cron(cron))


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "a b c d e",
        "60 * * * *",
        "* * * *",
        "* * * * * *",
        "@often",
        "*/0 * * * *",
        "1- * * * *",
        "0 0 31 2 *",
    ],
)
@pytest.mark.parametrize("section", ["schedule", "evaluation"])
def test_what_is_no_cron_schedule_is_refused_in_one_line(section, cron):
    setting = {"schedule": "schedule.refresh_cron", "evaluation": "evaluation.cron"}[section]
    settings = with_cron(cron, section)
    for use in (check_crons, build_definitions):
        with pytest.raises(ConfigError) as caught:
            use(settings)
        assert str(caught.value).startswith(f"{setting} = {cron!r}: must be five cron fields")
        assert "\n" not in str(caught.value)


def test_a_file_of_environment_variables_beside_the_settings_counts_below_the_environment(
    monkeypatch, tmp_path
):
    (tmp_path / ".env").write_text(
        "GRAPHRAG_API_KEY=sk-of-the-file\nGRAPHRAG_CHUNKS__SIZE=200\n"
        "GRAPHRAG_LLM__MODEL='gpt-4o'\nOTHER=1\n"
    )
    settings = load(tmp_path, "[chunks]\nsize = 300\noverlap = 20")
    assert (settings.chunks.size, settings.chunks.overlap) == (200, 20)
    assert settings.llm.model == "gpt-4o"
    assert model_options(settings, "answers").connection()[1] == "sk-of-the-file"
    assert "sk-of-the-file" not in repr(settings) + json.dumps(settings.as_set())
    assert "sk-of-the-file" not in repr(model_options(settings, "answers"))
    monkeypatch.setenv("GRAPHRAG_CHUNKS__SIZE", "250")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    settings = load(tmp_path, "")
    assert settings.chunks.size == 250
    assert model_options(settings, "answers").connection()[1] == "sk-of-the-environment"
    assert Settings.exactly(settings.as_set()) == settings


def test_a_key_is_found_under_the_name_that_users_of_graphrag_have(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHRAG_API_KEY", "sk-theirs")
    assert model_options(load_settings(), "answers").connection()[1] == "sk-theirs"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("GRAPHRAG_CHUNK__SIZE=3", "unknown environment variable GRAPHRAG_CHUNK__SIZE"),
        ("GRAPHRAG_CHUNKS__SIZE=x", ".env: chunks.size = 'x'"),
        ("# a key\nOPENAI_API_KEY=k\nfoo bar\n", ".env: line 3 must be NAME=value"),
        ("\udcff\udcfe", ".env is not UTF-8"),
    ],
)
def test_a_wrong_setting_in_a_file_of_environment_variables_is_named(tmp_path, text, said):
    (tmp_path / ".env").write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ConfigError, match=re.escape(said)):
        load(tmp_path, "")


@pytest.mark.parametrize("level", [1, "1", "C1", "c1"])
def test_a_level_is_a_number_or_as_in_the_paper_wherever_it_is_set(tmp_path, monkeypatch, level):
    assert Settings(query={"level": level}).query.level == 1
    assert load(tmp_path, f"[query]\nlevel = {json.dumps(level)}").query.level == 1
    monkeypatch.setenv("GRAPHRAG_QUERY__LEVEL", str(level))
    assert Settings().query.level == 1


def test_what_is_no_level_is_refused_with_what_would_be_one(tmp_path):
    with pytest.raises(ConfigError, match="level = 'root': levels are numbers from 0, the root"):
        load(tmp_path, '[query]\nlevel = "root"')


def test_a_file_of_environment_variables_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "graphrag.toml").write_text('[llm]\nenv_file = "secrets.env"\n')
    with pytest.raises(ConfigError, match=r"llm\.env_file = 'secrets.env': there is no such file"):
        load_settings(tmp_path / "graphrag.toml")
