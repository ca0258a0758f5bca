"""Arithmetic of a logical form: expressions over earlier results, reckoned without running code."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of

REFERENCE = pattern_of(r"#(\d{1,2})")
"""How a step names the result of an earlier one, from 1."""

_LONGEST, _MOST_NODES, _LARGEST = 300, 60, 1e15
_NUMBER = pattern_of(r"(?<![\w.])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\d.])-?\d+(?:\.\d+)?")
_YEAR = pattern_of(r"(?<!\d)(?:1\d{3}|20\d{2})(?!\d)")
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SCALE = pattern_of(rf"\s*({'|'.join(_SCALES)})\b", re.IGNORECASE)
_OPERATIONS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "sum": lambda *values: sum(values),
    "mean": lambda *values: sum(values) / len(values),
    "count": lambda *values: len(values),
}


class ArithmeticStepError(ValueError):
    """An expression that has no value; the message says why."""


def reckon(expression: str, results: Sequence[str]) -> str:
    """Return the value of an expression in which ``#1`` is the number in the first result.

    Numbers, ``+ - * / // % **``, comparisons of two and abs, min, max, round, sum, mean and count:
    anything else is refused, and so is what would be very large. Raises ArithmeticStepError.
    """
    if len(expression) > _LONGEST:
        raise ArithmeticStepError("the expression is too long")
    text = REFERENCE.sub(lambda match: f"({_number_of(int(match[1]), results)!r})", expression)
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ArithmeticStepError("it is no expression") from None
    if sum(1 for _ in ast.walk(tree)) > _MOST_NODES + 10 * len(REFERENCE.findall(expression)):
        raise ArithmeticStepError("the expression is too long")
    try:
        return _shown(_value(tree.body))
    except ZeroDivisionError:
        raise ArithmeticStepError("it divides by zero") from None
    except (OverflowError, TypeError, ValueError) as error:
        if isinstance(error, ArithmeticStepError):
            raise
        raise ArithmeticStepError("it has no value") from None


def number_in(text: str) -> float | None:
    """Return the number that a text states: its only one, else a year, else the first."""
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return None
    year = year_in(text) if len(matches) > 1 else None
    if year is not None:
        return year
    scale = _SCALE.match(text, matches[0].end())
    return float(matches[0][0].replace(",", "")) * (_SCALES[scale[1].lower()] if scale else 1.0)


def year_in(text: str) -> float | None:
    """Return the first year that a text states, 1000 to 2099."""
    year = _YEAR.search(text)
    return float(year[0]) if year else None


def _number_of(step: int, results: Sequence[str]) -> float:
    if not 1 <= step <= len(results):
        raise ArithmeticStepError(f"there is no result #{step}")
    number = number_in(results[step - 1])
    if number is None or abs(number) > _LARGEST:
        raise ArithmeticStepError(f"no number stands in #{step}")
    return number


def _value(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _bounded(float(_value(left)) ** float(_value(right)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _bounded(_OPERATIONS[type(op)](_value(left), _value(right)))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if (
            name in _FUNCTIONS
        ):
            return _bounded(_FUNCTIONS[name](*map(_value, args)))
    raise ArithmeticStepError("only numbers, + - * / // % **, comparisons and functions count")


def _bounded(value: float) -> float:
    if isinstance(value, complex) or not math.isfinite(value) or abs(value) > _LARGEST:
        raise ArithmeticStepError("the value is too large")
    return value


def _shown(value: float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    whole = round(value)
    return str(whole) if value == whole else f"{round(value, 6):.6f}".rstrip("0")
