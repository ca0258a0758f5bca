"""The flow of a method as a picture: a card for each step, and what asks a model marked.

All text stands on the cards, white on dark, so that it can be read on a light page and a dark one;
the picture is as wide as a telephone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from docs.method_entries import Step

PICTURES = Path(__file__).parent / "images" / "methods"
_WIDTH, _CARD, _LEFT = 400, 376, 40
_GAP, _PADDING = 18, 10
_RULE, _MODEL, _LINE = "#2b5a86", "#8f4a0b", "#7d8590"
_SOFT = "#dbe6f1"
_TEXT = (14, 40, 18)
_NOTE = (12, 46, 16)
"""Size of letters, how many fit beside each other in any font, and height of a line."""


def picture(name: str, flow: Sequence[Step]) -> str:
    """Return the flow of a method as SVG."""
    cards: list[str] = []
    spans: list[tuple[float, float]] = []
    y = 1.0
    for number, step in enumerate(flow, start=1):
        card, height = _card(number, step, y)
        cards.append(card)
        spans.append((y, y + height))
        y += height + _GAP
    arrows = "".join(_arrow(above[1]) for above in spans[:-1])
    loops = "".join(
        _loop(spans[step.since - 1], span)
        for step, span in zip(flow, spans, strict=True)
        if step.again
    )
    height = y - _GAP + 1
    said = escape(in_words(name, flow))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" '
        f'width="{_WIDTH}" height="{height:g}" role="img" aria-label="{said}" '
        f'font-family="system-ui, sans-serif">\n'
        f"{''.join(cards)}{arrows}{loops}</svg>\n"
    )


def in_words(name: str, flow: Sequence[Step]) -> str:
    """Return what the picture shows, for those who do not see it."""
    steps = "; ".join(
        f"{number}. {step.does}{' (asks the model)' if step.prompts else ''}"
        for number, step in enumerate(flow, start=1)
    )
    return f"The flow of {name}: {steps}"


def _card(number: int, step: Step, y: float) -> tuple[str, float]:
    """Return a card at a height, and how high it is."""
    lines = [(line, _TEXT, "#fff") for line in textwrap.wrap(step.does, _TEXT[1])]
    notes = _notes(number, step)
    lines += [(line, _NOTE, _SOFT) for note in notes for line in textwrap.wrap(note, _NOTE[1])]
    height = 2 * _PADDING + sum(size[2] for _, size, _ in lines)
    dashes = f' stroke="{_SOFT}" stroke-dasharray="5 4"' if step.only else ""
    fill = _MODEL if step.prompts else _RULE
    drawn = [
        f'<rect x="1" y="{y:g}" width="{_CARD}" height="{height}" rx="8" fill="{fill}"{dashes}/>',
        f'<text x="20" y="{y + _PADDING + 14:g}" font-size="14" font-weight="700" '
        f'text-anchor="middle" fill="#fff">{number}</text>',
    ]
    at = y + _PADDING
    for line, (letters, _, line_height), colour in lines:
        drawn.append(
            f'<text x="{_LEFT}" y="{at + letters:g}" font-size="{letters}" fill="{colour}">'
            f"{escape(line)}</text>"
        )
        at += line_height
    return "\n".join(drawn) + "\n", height


def _notes(number: int, step: Step) -> Iterator[str]:
    if step.reads:
        yield f"reads {step.reads}"
    if step.prompts:
        yield f"asks the model: {' or '.join(step.prompts)}"
    if step.only:
        yield f"only {step.only}"
    if step.again:
        yield f"\u21bb {'' if step.since == number else f'from {step.since}: '}{step.again}"


def _arrow(y: float) -> str:
    x, tip = 1 + _CARD / 2, y + _GAP - 2
    return (
        f'<path d="M{x:g} {y + 1:g}V{tip - 5:g}" stroke="{_LINE}" stroke-width="2"/>'
        f'<path d="M{x - 5:g} {tip - 7:g}h10l-5 7z" fill="{_LINE}"/>\n'
    )


def _loop(first: tuple[float, float], last: tuple[float, float]) -> str:
    """Return an arrow on the right that goes back to the first of the steps repeated."""
    edge, out = _CARD + 1, _WIDTH - 6
    low, high = (last[0] + last[1]) / 2 + 6, (first[0] + first[1]) / 2 - 6
    return (
        f'<path d="M{edge + 1} {low:g}H{out}V{high:g}H{edge + 6}" fill="none" stroke="{_LINE}" '
        f'stroke-width="2"/><path d="M{edge + 8} {high - 5:g}v10l-7 -5z" fill="{_LINE}"/>\n'
    )
