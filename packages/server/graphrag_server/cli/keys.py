"""`keys`: who may ask the server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.core.errors import InputError

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_server.keys import Key

app = typer.Typer(
    name="keys",
    help="Make, list and revoke the keys of those who call the server.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def show_added(added: tuple[Key, str]) -> None:
    """Print a new key, once."""
    key, text = added
    console.say_whole(text)
    console.note(f"This is the key of {key.name}. Copy it now: it is not shown again.")


def show_keys(keys: list[dict[str, Any]]) -> None:
    """Print keys as a table."""
    if not keys:
        console.say("There are no keys, so only this machine may ask the server.")
        return
    rows = [
        (
            key["id"],
            key["name"],
            key["state"],
            *(", ".join(sorted(key[part])) for part in ("collections", "labels", "scopes")),
            _day(key["expires"]),
            _limits(key),
            f"${key['usd']:,.2f}",
        )
        for key in keys
    ]
    console.table(
        ("id", "name", "state", "collections", "labels", "scopes", "expires", "limits", "spent"),
        rows,
    )


def show_revoked(key: Key) -> None:
    """Say that a key is over."""
    console.say(f"The key {key.id} of {key.name} is revoked and no longer works.")


def added_values(added: tuple[Key, str]) -> dict[str, Any]:
    """Return a new key as values that JSON can hold."""
    key, text = added
    return {**key.to_dict(), "key": text}


@app.command()
@prints(show_added, added_values)
def add(
    name: Annotated[str, typer.Argument(help="Name of the person or program that gets the key.")],
    collections: Annotated[
        str, typer.Option(help="Collections it may ask, comma-separated; * for all.")
    ] = "default",
    labels: Annotated[
        str, typer.Option(help="Labels of the documents it may see, comma-separated; * for all.")
    ] = "",
    scopes: Annotated[
        str, typer.Option(help="What it is for: query, read, sql, write, metrics.")
    ] = "query,read",
    expires: Annotated[str, typer.Option(help="The last day it is valid (2027-01-31, UTC).")] = "",
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, help="Most requests in a minute.")
    ] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of a model in a minute.")
    ] = None,
    budget_usd: Annotated[
        float | None, typer.Option(min=0, help="Most US dollars of model calls, in all.")
    ] = None,
) -> tuple[Key, str]:
    """Make a key and print it once. Only its hash is kept."""
    from graphrag_server.keys import add_key

    settings = settings_here()
    return add_key(
        settings,
        name,
        collections=_known(_parts(collections), settings),
        labels=_parts(labels),
        scopes=_parts(scopes),
        expires=_end_of(expires),
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        budget_usd=budget_usd,
    )


@app.command("list")
@prints(show_keys)
def list_keys() -> list[dict[str, Any]]:
    """List the keys, expired ones too, and what each has spent. No key itself is shown."""
    from graphrag_server.accounts import keys_with_spending
    from graphrag_server.paths import ServerFiles

    return keys_with_spending(ServerFiles(settings_here().home_path))


@app.command()
@prints(show_revoked)
def revoke(
    key: Annotated[str, typer.Argument(help="The id of a key, or the name it was made for.")],
) -> Key:
    """Revoke a key. A running server refuses it from the next request on."""
    from graphrag_server.keys import revoke_key

    return revoke_key(settings_here(), key)


def _parts(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _known(names: frozenset[str], settings: Settings) -> frozenset[str]:
    known = {"default", "*", *settings.server.collections}
    if unknown := sorted(names - known):
        raise InputError(
            f"there is no collection {unknown[0]}: use one of {', '.join(sorted(known))}, or name "
            "it in [server.collections] first"
        )
    return names


def _end_of(day: str) -> datetime | None:
    if not day:
        return None
    try:
        return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except ValueError:
        raise InputError(f"--expires {day} is not a date: write it as 2027-01-31") from None


def _day(expires: str | None) -> str:
    if expires is None:
        return "never"
    return f"{datetime.fromisoformat(expires) - timedelta(seconds=1):%Y-%m-%d}"


def _limits(key: dict[str, Any]) -> str:
    limits = {
        "requests/min": key["requests_per_minute"],
        "tokens/min": key["tokens_per_minute"],
        "USD": key["budget_usd"],
    }
    return ", ".join(f"{value:,} {unit}" for unit, value in limits.items() if value is not None)
