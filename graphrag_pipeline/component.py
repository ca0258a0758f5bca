"""The pipeline as a Dagster component: an index in a project of your own, from a ``defs.yaml``."""

# No annotations from the future: Dagster reads the attributes of a component from them.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from pydantic import BaseModel, ConfigDict, create_model

from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.definitions import Automation, SettingsOnce, build_definitions


def _settings_model() -> type[BaseModel]:
    """Return what may stand under ``settings``: the sections of ``graphrag.toml``."""
    fields: dict[str, Any] = {
        name: (info.annotation, info) for name, info in Settings.model_fields.items()
    }
    config = ConfigDict(extra="forbid")
    return create_model("GraphRAGSettings", __config__=config, **fields)


def _resolve_automation(_: dg.ResolutionContext, value: bool | str) -> str:
    # YAML takes the bare words off and on for false and true.
    return ("on" if value else "off") if isinstance(value, bool) else value


def _resolve_settings(context: dg.ResolutionContext, model: Any) -> Mapping[str, Any]:
    return context.resolve_value(model.model_dump(exclude_unset=True, mode="json"), as_type=dict)


@dataclass
class GraphRAGComponent(dg.Component, dg.Resolvable):
    """An index of a folder of documents: assets, jobs, sensors, schedules and a resource.

    ``settings`` are those of ``graphrag.toml``, section by section; what it leaves out comes from
    the environment, then from ``graphrag.toml``, then from the defaults. Folders are relative to
    the project. With a ``key_prefix``, all keys begin with it and the resource is called
    ``PREFIX_index``: a project holds as many indexes as it has prefixes, each with its own home.
    Nothing starts by itself unless ``automation`` is on: sensors and schedules are switched on in
    the UI.
    """

    settings: Annotated[
        Mapping[str, Any],
        dg.Resolver(
            _resolve_settings,
            model_field_type=_settings_model(),
            description="Settings, as in graphrag.toml; folders are relative to the project.",
            examples=[{"home": "handbook_index", "input": {"folder": "handbook"}}],
        ),
    ] = field(default_factory=dict)
    key_prefix: Annotated[
        str | Sequence[str],
        dg.Resolver.default(description="First parts of every asset's key, and of other names."),
    ] = ()
    marts: Annotated[
        bool, dg.Resolver.default(description="Whether to build the marts, with dbt.")
    ] = True
    automation: Annotated[
        Automation,
        dg.Resolver(
            _resolve_automation,
            model_field_type=Automation | bool,
            description="Whether sensors and schedules begin switched on: off or on.",
        ),
    ] = "off"

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the index."""
        build = partial(
            build_definitions,
            key_prefix=self.key_prefix,
            marts=self.marts,
            automation=self.automation,
        )
        name = "/".join([self.key_prefix] if isinstance(self.key_prefix, str) else self.key_prefix)
        return SettingsOnce(partial(self._read, context.project_root), build, name).build_defs()

    def _read(self, root: Path) -> Settings:
        settings = load_settings(**self.settings)
        folder = str(root / Path(settings.input.folder).expanduser())
        values = {**self.settings, "home": str(root / Path(settings.home).expanduser())}
        return load_settings(**{**values, "input": {**values.get("input", {}), "folder": folder}})
