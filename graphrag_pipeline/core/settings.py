"""Settings: what a program says, over environment variables, over ``graphrag.toml``, over defaults.

A section may be part of one and part of another: each setting is taken from the first that has it.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import BaseModel, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.environment import BROKER, POSTGRES, Secret, variable
from graphrag_pipeline.core.errors import ConfigError, StorageError, did_you_mean
from graphrag_pipeline.core.model_settings import (
    CHAT,
    EMBEDDINGS,
    LLM,
    PROFILES,
    VECTORS,
    LlmSettings,
    ModelSettings,
    Role,
    RoleSettings,
    check_models,
)
from graphrag_pipeline.core.model_sizes import why_by_rule
from graphrag_pipeline.core.ownership import check_values, other_owner
from graphrag_pipeline.core.package_settings import check_sections, read_section
from graphrag_pipeline.core.service_settings import (
    AccessSettings,
    EvaluationSettings,
    NotifySettings,
    ReleaseSettings,
    ScheduleSettings,
    ServerSettings,
    StorageSettings,
    WorkerSettings,
    check_sharing,
)
from graphrag_pipeline.core.setting_errors import instead_in_a_model, shown, what_is_right
from graphrag_pipeline.core.setting_values import Place, Rights, Section, without_nul
from graphrag_pipeline.core.stage_settings import (
    BatchSettings,
    ChunkSettings,
    CommunitySettings,
    EmbeddingSettings,
    ExtractionSettings,
    GraphSettings,
    HierarchySettings,
    InputSettings,
    QuerySettings,
    ReportSettings,
    ResolutionSettings,
    StructureSettings,
)

CONFIG_FILE = "graphrag.toml"
PREFIX = "GRAPHRAG_"
WEBHOOK, MAIL_SERVER = f"{PREFIX}WEBHOOK_URL", f"{PREFIX}SMTP_URL"
"""Variables of the environment that hold secrets: where notices go."""
_NO_SETTINGS = {f"{PREFIX}CONFIG", f"{PREFIX}API_KEY", WEBHOOK, MAIL_SERVER, POSTGRES, BROKER}
MODELS = "models"
_ARGUMENTS, _ENVIRONMENT = "the settings of the program", "the environment"


class Settings(BaseSettings):
    """All settings: the arguments, over environment variables, over a file, over the defaults.

    ``Settings(home="x", chunks={"size": 300})`` asks the environment for all else (GRAPHRAG_HOME,
    GRAPHRAG_CHUNKS__OVERLAP=50) and reads no file: :func:`load_settings` does. A section that is
    given as an object, ``ChunkSettings(size=300)``, is the whole section.

    Settings never change. ``Settings(**settings.model_dump(mode="json"))`` equals ``settings`` in
    whatever environment. Raises ConfigError with one line per wrong setting.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
    )

    def __repr__(self) -> str:
        return f"Settings({showing.cut(self.as_set(), 2 * showing.WIDTH)})"

    def __init__(
        self, _file: Path | None = None, _env_file: Path | None = None, **values: Any
    ) -> None:
        layers = {_ARGUMENTS: values, _ENVIRONMENT: _environment()}
        if _env_file is not None and _env_file.is_file():
            layers[str(_env_file)] = _of_env_file(_env_file)
        if _file is not None:
            layers[str(_file)] = _read_toml(_file)
        try:
            super().__init__(**_merged([*layers.values()]))
        except ValidationError as error:
            raise ConfigError("\n".join(_explain(error, layers))) from None
        check_sharing(self.storage, self.workers, self.postgres, self.broker)
        check_models(self.models, self.roles)
        check_sections(self.packages)

    _nul = field_validator("home", mode="before")(without_nul)

    home: Place = ".graphrag"
    """Folder of everything the pipeline writes."""
    home_mode: Rights = "0700"
    """Rights of that folder when it is made: 0700, you alone; 0750, your group may read what is
    published. Paid answers and Dagster's history stay yours; a home that is there is not changed.
    """
    profile: Literal["embedded", "llm", "local"] = "embedded"
    """embedded: no model and no key. llm: each stage by the model in [llm], unless set alone.
    local: the same for a small model on your own machine, with budgets that fit its window; of one
    below three thousand million parameters rules extract, for they find more."""
    packages: dict[str, dict[str, Any]] = {}
    """Settings of packages that are installed beside: a table for each, [packages.NAME]."""
    models: dict[str, ModelSettings] = {}
    """More models than that of [llm], each in a section [models.NAME]: [roles] has their tasks."""
    storage: StorageSettings = StorageSettings()
    workers: WorkerSettings = WorkerSettings()
    input: InputSettings = InputSettings()
    batches: BatchSettings = BatchSettings()
    chunks: ChunkSettings = ChunkSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    graph: GraphSettings = GraphSettings()
    resolution: ResolutionSettings = ResolutionSettings()
    communities: CommunitySettings = CommunitySettings()
    reports: ReportSettings = ReportSettings()
    embeddings: EmbeddingSettings = EmbeddingSettings()
    hierarchies: HierarchySettings = HierarchySettings()
    structures: StructureSettings = StructureSettings()
    query: QuerySettings = QuerySettings()
    llm: LlmSettings = LlmSettings()
    roles: RoleSettings = RoleSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    notify: NotifySettings = NotifySettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    releases: ReleaseSettings = ReleaseSettings()
    access: AccessSettings = AccessSettings()
    server: ServerSettings = ServerSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the arguments alone: ``__init__`` has laid them over all other sources."""
        return (init_settings,)

    @model_validator(mode="after")
    def _profile_decides(self) -> Settings:
        is_open = False
        for section, values in PROFILES[self.profile].items():
            own: Section = getattr(self, section)
            left = values.keys() - own.model_fields_set
            decided = {n: v for n, v in values.items() if n in left or getattr(own, n) == "auto"}
            if decided:
                object.__setattr__(self, section, own.model_copy(update=decided))
            if section == "extraction" and "extractor" in decided:
                is_open = True
        if is_open:
            extractor = "nlp" if self.why_by_rule else self.extraction.extractor
            decided = self.extraction.model_copy(update={"extractor": extractor})
            # Decided anew by who is given these settings once more is known of the model.
            decided.model_fields_set.discard("extractor")
            object.__setattr__(self, "extraction", decided)
        return self

    @property
    def why_by_rule(self) -> str:
        """The reason why rules extract better than a small local model; empty for any other."""
        if self.profile != "local":
            return ""
        model = self.llm_for("extraction")
        return why_by_rule(model.base_url, model.model, self.home_path)

    @classmethod
    def exactly(cls, values: Mapping[str, Any]) -> Settings:
        """Return settings of these values and defaults, whatever the environment says.

        With what :meth:`as_set` returns, these are the same settings again.
        """
        settings = cls.__new__(cls)
        BaseModel.__init__(settings, **values)
        return settings

    def as_set(self) -> dict[str, Any]:
        """Return what was set, as plain values; what was left at its default is not in it."""
        return self.model_dump(mode="json", exclude_unset=True)

    def of_package(self, name: str) -> Any:
        """Return the settings of a package, as the model that it brings by the door ``settings``.

        Raises ConfigError where no package has such a section, or a value of it is wrong.
        """
        return read_section(name, self.packages.get(name, {}))

    def model_for(self, role: Role) -> str:
        """Return the name of the model of a role: of a section ``[models.NAME]``, or ``llm``."""
        usual = VECTORS if role == EMBEDDINGS else CHAT
        return getattr(self.roles, role) or (usual if usual in self.models else LLM)

    def llm_for(self, role: Role) -> LlmSettings:
        """Return the model of a role: ``[llm]``, and what ``[models.NAME]`` says over it."""
        section = self.models.get(self.model_for(role))
        return section.over(self.llm, role) if section else self.llm

    def with_llm(self, llm: LlmSettings) -> Settings:
        """Return these settings with one model for all roles."""
        return self.model_copy(update={"llm": llm, "models": {}, "roles": RoleSettings()})

    @property
    def postgres(self) -> Secret:
        """The address of Postgres, with its password; no dump of the settings has it."""
        return Secret(variable(POSTGRES, self.llm.env_file) or self.storage.postgres)

    @property
    def broker(self) -> Secret:
        """The address of Redis, with its password; no dump of the settings has it."""
        return Secret(variable(BROKER, self.llm.env_file) or self.workers.broker)

    @property
    def home_path(self) -> Path:
        """The home folder, absolute."""
        return Path(self.home).expanduser().resolve()

    @property
    def input_path(self) -> Path:
        """The input folder, absolute."""
        return Path(self.input.folder).expanduser().resolve()

    @property
    def aliases_path(self) -> Path | None:
        """The user's file of aliases: as named, or in the home folder.

        None where there is none and none was asked for. Raises ConfigError if a file that was
        asked for is not there.
        """
        name = Path(self.resolution.aliases_file).expanduser()
        for folder in (Path.cwd(), self.home_path):
            if (folder / name).is_file():
                return (folder / name).resolve()
        if self.resolution.aliases_file not in ("", ResolutionSettings().aliases_file):
            raise ConfigError(
                f"resolution.aliases_file = {self.resolution.aliases_file!r}: there is no such file"
            )
        return None


def load_settings(file: Path | None = None, **values: Any) -> Settings:
    """Return ``Settings(**values)`` over the environment, ``.env`` and the settings file.

    ``file`` defaults to ``graphrag.toml`` in the folder ``home``, where that is among the values;
    then ``$GRAPHRAG_CONFIG``, then ``graphrag.toml`` in the current folder, then in the home folder
    of the environment. ``.env`` lies beside that file, or in the current folder where there is
    none; what it says of GRAPHRAG_* counts as if it stood in the environment, which wins over it.
    Raises ConfigError with one line per wrong setting, and for an environment variable that looks
    like a setting and is none.
    """
    path = file or _find_config_file(values.get("home"))
    env_file = (path.parent if path else Path()) / ".env"
    if not file and not os.environ.get(f"{PREFIX}CONFIG"):
        _check_owners(path, env_file)
    for where, names in (("", _environment_names()), (f"{env_file}: ", _settings_in(env_file))):
        for name in names:
            if not _is_setting(name):
                setting = name[len(PREFIX) :].lower().replace("__", ".")
                instead = _instead_of(setting, _as_variable)
                raise ConfigError(f"{where}unknown environment variable {name}: {instead}")
    settings = Settings(path, env_file, **values)
    if settings.llm.env_file and not Path(settings.llm.env_file).is_file():
        raise ConfigError(f"llm.env_file = {settings.llm.env_file!r}: there is no such file")
    return _with_aliases_beside(path, settings) if path else settings


def _check_owners(config: Path | None, env_file: Path) -> None:
    """Raise ConfigError where settings that were found, not named, are somebody else's trap."""
    if config is not None and (owner := other_owner(config)):
        values = _read_toml(config)
        check_values(config, owner, values)
    if owner := other_owner(env_file):
        values = _of_env_file(env_file)
        check_values(env_file, owner, values, env_file)


def _with_aliases_beside(config: Path, settings: Settings) -> Settings:
    """Return the settings with the file of aliases named in full where it lies beside theirs."""
    name = Path(settings.resolution.aliases_file).expanduser()
    beside = config.resolve().parent / name
    if beside.parent in (Path.cwd(), settings.home_path) or not beside.is_file():
        return settings
    if name.is_file():
        return settings
    resolution = settings.resolution.model_copy(update={"aliases_file": str(beside)})
    return settings.model_copy(update={"resolution": resolution})


def fingerprint(*parts: object) -> str:
    """Return a short stable hash of plain values and settings (16 hexadecimal digits)."""
    plain = [p.model_dump(mode="json") if isinstance(p, BaseModel) else p for p in parts]
    canonical = json.dumps(plain, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def setting_fields() -> Iterator[tuple[type[BaseModel], str, str, object]]:
    """Yield (owner, section, name, default) of every setting, in order."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, Section):
            section = type(field.default)
            for inner, inner_field in section.model_fields.items():
                yield section, name, inner, inner_field.default
        else:
            yield Settings, "", name, field.default


def _find_config_file(home: object) -> Path | None:
    if isinstance(home, str | Path) and (own := Path(home).expanduser() / CONFIG_FILE).is_file():
        return own
    file_name = os.environ.get(f"{PREFIX}CONFIG")
    if file_name:
        if not Path(file_name).is_file():
            raise ConfigError(f"GRAPHRAG_CONFIG names {file_name}, which is not a file")
        return Path(file_name)
    places = (Path(), Path(os.environ.get(f"{PREFIX}HOME", ".graphrag")))
    try:
        return next((p / CONFIG_FILE for p in places if (p / CONFIG_FILE).is_file()), None)
    except PermissionError as error:
        raise StorageError(f"cannot look for {error.filename}: permission denied") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


def _environment() -> dict[str, Any]:
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        raise ConfigError(_explain_environment() or str(error).splitlines()[0]) from None


def _of_env_file(path: Path) -> dict[str, Any]:
    """Return the settings in a file of environment variables, and where the model's key is."""
    try:
        values = DotEnvSettingsSource(Settings, env_file=path)()
    except SettingsError as error:
        raise ConfigError(f"{path}: {str(error).splitlines()[0]}") from None
    known = {name: value for name, value in values.items() if name in Settings.model_fields}
    model = known.get("llm")
    known["llm"] = {"env_file": str(path.resolve()), **(model if isinstance(model, dict) else {})}
    return known


def _settings_in(path: Path) -> list[str]:
    """Return the names of a file of environment variables that look like settings.

    Raises ConfigError where it cannot be read.
    """
    if not path.is_file():
        return []
    try:
        with path.open(encoding="utf-8") as text:
            for line in parse_stream(text):
                if line.error:
                    number = line.original.line
                    raise ConfigError(f"{path}: line {number} must be NAME=value, or begin with #")
        names = [name.upper() for name in dotenv_values(path)]
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8: save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    return [name for name in names if name.startswith(PREFIX) and name not in _NO_SETTINGS]


def _merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return each setting as the first layer has it that does; sections are put together."""
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        for name, value in layer.items():
            below = values.get(name)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                value = _merged([value, below]) if name == MODELS else {**below, **value}
            values[name] = value
    return values


def _environment_names() -> list[str]:
    names = [name for name in os.environ if name.upper().startswith(PREFIX)]
    return [name for name in names if name.upper() not in _NO_SETTINGS]


def _known_names() -> set[str]:
    return {f"{g}__{n}" if g else n for _, g, n, _ in setting_fields()}


def _is_setting(variable: str) -> bool:
    name = variable[len(PREFIX) :].lower()
    section, _, of_model = name.partition("__")
    if section == MODELS and of_model:
        return of_model.partition("__")[2] in ModelSettings.model_fields
    return name in _known_names() or name in Settings.model_fields


def _explain(error: ValidationError, layers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for item in error.errors():
        name = ".".join(str(part) for part in item["loc"])
        source = _source(item["loc"], layers)
        if item["type"] == "extra_forbidden":
            yield f"{source}: unknown setting {name}: {_instead_of(name)}"
        elif item["type"] == "value_error":
            yield f"{source}: {item['msg'].removeprefix('Value error, ')}"
        else:
            yield f"{source}: {name} = {shown(item)}: {what_is_right(item)}"


def _instead_of(name: str, written: Callable[[str], str] = str) -> str:
    """Say what to write in place of a setting there is not; the right one as it is ``written``."""
    section, _, own = name.rpartition(".")
    if own == "api_key":
        return "no key stands in settings: set OPENAI_API_KEY, or write it to .env"
    if name == "notify.webhook":
        return f"its address is a secret: set {WEBHOOK}, or write it to .env"
    if section.startswith(f"{MODELS}."):
        return instead_in_a_model(section, own, written)
    names = [n.replace("__", ".") for n in sorted(_known_names())]
    called_so = [n for n in names if n.rpartition(".")[2] in (own, section)]
    otherwise = f"did you mean {written(called_so[0])}?" if called_so else "remove it"
    if section in Settings.model_fields:
        owns = [n.rpartition(".")[2] for n in names if n.startswith(f"{section}.")]
        return did_you_mean(own, owns, otherwise, lambda close: written(f"{section}.{close}"))
    return did_you_mean(name, (*Settings.model_fields, *names), otherwise, written)


def _as_variable(name: str) -> str:
    return PREFIX + name.replace(".", "__").upper()


def _source(place: tuple[int | str, ...], layers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return where the setting at this place, or the first of its section, is said to be so."""
    for name, layer in layers.items():
        value: Any = layer
        for part in place:
            value = value.get(part) if isinstance(value, Mapping) else value
        if value is not None:
            return _variable(place) if name == _ENVIRONMENT else name
    return [*layers][-1]


def _variable(place: tuple[int | str, ...]) -> str:
    """Return the environment variable that gives a setting, or one of a section."""
    depth = 3 if place[:1] == (MODELS,) else 2
    variable = PREFIX + "__".join(str(part) for part in place[:depth]).upper()
    names = sorted(n for n in os.environ if f"{n.upper()}__".startswith(f"{variable}__"))
    return names[0] if names else _ENVIRONMENT


def _explain_environment() -> str | None:
    """Return what is wrong with a variable that must be JSON, the way a list is given."""
    lists = {f"{g}__{n}" for _, g, n, default in setting_fields() if isinstance(default, tuple)}
    tables = {f"{g}__{n}" for _, g, n, default in setting_fields() if isinstance(default, dict)}
    sections = {group for _, group, _, _ in setting_fields() if group}
    for given in sorted(_environment_names()):
        name = given[len(PREFIX) :].lower()
        if name not in lists | tables | sections:
            continue
        try:
            json.loads(os.environ[given])
        except ValueError:
            right = '["one", "other"]' if name in lists else '{"setting": "value"}'
            return f"{given} = {os.environ[given]!r}: must be JSON, such as {right}"
    return None
