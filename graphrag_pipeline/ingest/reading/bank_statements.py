"""Statements of banks: CAMT, which is XML of ISO 20022, and MT940, which SWIFT has used before.

Each booking is a record: when, how much, who pays or is paid, and what for; and each statement,
with its balances.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import one_line, with_newlines
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Scalar,
)
from graphrag_pipeline.ingest.reading.records import filled, read_records
from graphrag_pipeline.ingest.reading.xml_tree import XmlElement, elements_in, said_of

_STATEMENTS = ("Stmt", "Rpt", "Ntfctn")
_BALANCES = {"OPBD": "opening balance", "PRCD": "opening balance", "CLBD": "closing balance"}
_DEBIT = "DBIT"
_TAG = pattern_of(r"^:(\d\d[A-Z]?):", re.M)
_BOOKED = pattern_of(
    r"(?P<day>\d{6})(?:\d{4})?(?P<sign>R?[CD])[A-Z]?(?P<sum>[\d,.]{1,20})[A-Z]\w{0,3}(?P<more>.*)",
    re.S,
)
_BALANCE = pattern_of(r"(?P<sign>[CD])(?P<day>\d{6})(?P<currency>[A-Z]{3})(?P<sum>[\d,.]{1,20})")
_PART = pattern_of(r"\?(\d\d)([^?]*)")
_OF_TAG = {
    "60F": "opening balance",
    "60M": "opening balance",
    "62F": "closing balance",
    "62M": "closing balance",
}
_LAST_OF_1900 = 79
_FULL = 27  # characters


def is_camt(root: XmlElement) -> bool:
    """Whether XML is statements of a bank."""
    return root.name == "Document" and any(elements_in(root, ("Ntry",)))


def read_camt(path: Path, root: XmlElement, options: ReadingOptions) -> ReadResult:
    """Read each booking of statements as a record, and the balances of each statement."""
    statements = elements_in(root, _STATEMENTS)
    return read_records(path, (filled(f) for each in statements for f in _of_camt(each)), options)


def _of_camt(statement: XmlElement) -> Iterator[Mapping[str, Scalar]]:
    account = said_of(statement, "Acct", "Id", "IBAN") or said_of(
        statement, "Acct", "Id", "Othr", "Id"
    )
    balances = {
        name: _amount(each)
        for each in elements_in(statement, ("Bal",))
        if (name := _BALANCES.get(said_of(each, "Tp", "CdOrPrtry", "Cd")))
    }
    number = said_of(statement, "ElctrncSeqNb") or said_of(statement, "Id")
    owner = said_of(statement, "Acct", "Ownr", "Nm")
    yield {"statement": number, "account": account, "owner": owner, **balances}
    for entry in elements_in(statement, ("Ntry",)):
        details = list(elements_in(entry, ("TxDtls",)))
        for detail in details or [entry]:
            booking = _of_entry(entry, detail, len(details) > 1)
            yield {**booking, "account": account, "owner": owner}


def _of_entry(entry: XmlElement, detail: XmlElement, is_part: bool) -> Mapping[str, Scalar]:
    is_debit = said_of(entry, "CdtDbtInd") == _DEBIT
    role, other = ("Cdtr", "payee") if is_debit else ("Dbtr", "payer")
    own = next(elements_in(detail, ("Amt",)), None) if is_part else None
    reference = said_of(detail, "Refs", "EndToEndId")
    purpose = " ".join(said_of(each) for each in elements_in(detail, ("Ustrd",)))
    return {
        "date": said_of(entry, "BookgDt", "Dt") or said_of(entry, "BookgDt", "DtTm"),
        "amount": _amount(entry, own),
        other: said_of(detail, "RltdPties", role, "Nm")
        or said_of(detail, "RltdPties", role, "Pty", "Nm"),
        "purpose": purpose or said_of(entry, "AddtlNtryInf"),
        "reference": "" if reference == "NOTPROVIDED" else reference,
    }


def _amount(element: XmlElement, own: XmlElement | None = None) -> str:
    amount = own or next(elements_in(element, ("Amt",)), XmlElement(""))
    sign = "-" if said_of(element, "CdtDbtInd") == _DEBIT else ""
    return one_line(f"{sign}{said_of(amount)} {amount.attributes.get('Ccy', '')}")


def read_mt940(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read each booking of statements as a record, and the balances of each statement."""
    text = with_newlines(decode(data, options.encoding))
    tags = list(_TAG.finditer(text))
    ends = [*(tag.start() for tag in tags[1:]), len(text)][: len(tags)]
    values = [(t[1], text[t.end() : end].strip("\n- ")) for t, end in zip(tags, ends, strict=True)]
    none = "the file has no bookings, as :61:2405040504D120,00N..."
    return read_records(path, map(filled, _of_mt940(values)), options, none=none)


def _of_mt940(values: list[tuple[str, str]]) -> Iterator[dict[str, Scalar]]:
    account = currency = ""
    statement: dict[str, Scalar] = {}
    bookings: list[dict[str, Scalar]] = []
    for tag, value in values:
        if tag == "25":
            account = one_line(value)
        elif tag in ("28", "28C"):
            statement = {"statement": one_line(value), "account": account}
        elif tag in _OF_TAG and (balance := _BALANCE.match(value)):
            currency = balance["currency"]
            statement.setdefault(_OF_TAG[tag], f"{_signed(balance)} {currency}")
        elif tag == "61" and (booked := _BOOKED.match(value)):
            amount = f"{_signed(booked)} {currency}".strip()
            bookings.append({"date": _day(booked["day"]), "amount": amount, "account": account})
        elif tag == "86" and bookings and "purpose" not in bookings[-1]:
            bookings[-1] |= _details(value, is_debit=str(bookings[-1]["amount"]).startswith("-"))
        if tag in ("62F", "62M"):
            yield statement
            yield from bookings
            bookings = []
    yield from bookings


def _details(value: str, *, is_debit: bool) -> dict[str, Scalar]:
    parts = [(int(number), said) for number, said in _PART.findall(value.replace("\n", ""))]
    if not parts:
        return {"purpose": one_line(value)}
    return {
        "payee" if is_debit else "payer": _joined(said for n, said in parts if n in (32, 33)),
        "purpose": _joined(said for n, said in parts if 20 <= n <= 29 or 60 <= n <= 63),
        "type": _joined(said for n, said in parts if n == 0),
    }


def _joined(parts: Iterable[str]) -> str:
    """Return the parts of a text, of which one that is full goes on in the next."""
    return one_line("".join(part if len(part) >= _FULL else f"{part} " for part in parts))


def _signed(match: re.Match[str]) -> str:
    sign = "-" if match["sign"] in ("D", "RC") else ""
    return sign + match["sum"].replace(",", ".").rstrip(".")


def _day(written: str) -> str:
    """Return a day that is written YYMMDD."""
    century = 19 if int(written[:2]) > _LAST_OF_1900 else 20
    return f"{century}{written[:2]}-{written[2:4]}-{written[4:]}"


MT940 = FileFormat(read_mt940, versions.of("bank statements", "records"), SMALL_RECORDS)
