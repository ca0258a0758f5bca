"""Small files that unpack to very much: one function for each, made when it is asked for."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping

Bomb = Callable[[], bytes]


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a zip archive of these parts, packed as tightly as can be."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _parquet(table: object, **how: object) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink, **how)
    return sink.getvalue()


def dictionary_column(value: int, rows: int, *, is_said: bool = True) -> bytes:
    """Return a table of one text of ``value`` characters that each of its rows refers to.

    Unless ``is_said``, only the file keeps it as a dictionary: it is read as a column of strings.
    """
    import pyarrow as pa

    indices = pa.array([0] * rows, pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["a" * value], pa.large_string()))
    return _parquet(
        pa.table({"text": column}),
        compression="zstd",
        store_schema=is_said,
        dictionary_pagesize_limit=2 * value + 10,
        write_statistics=False,
    )


def nested_dictionary_column(value: int, rows: int) -> bytes:
    """Return the same of a struct's field."""
    import pyarrow as pa

    column = pa.array([{"a": {"b": "a" * value}}] * rows)
    return _parquet(
        pa.table({"text": column}),
        compression="zstd",
        dictionary_pagesize_limit=2 * value + 10,
        write_statistics=False,
    )


def empty_rows(rows: int) -> bytes:
    """Return a table of nothing but empty cells."""
    import pyarrow as pa

    return _parquet(pa.table({"a": pa.nulls(rows, pa.bool_())}), compression="zstd")


def zeros_in(name: str, size: int, more: Mapping[str, str | bytes] | None = None) -> bytes:
    """Return an archive with one part of blanks."""
    return zipped({**(more or {}), name: b" " * size})


def understated_zip(name: str, size: int) -> bytes:
    """Return an archive that says of its part that it unpacks to ten bytes."""
    data = bytearray(zipped({name: b"<a>" * (size // 3)}))
    start = data.rindex(b"PK\x01\x02")
    data[start + 24 : start + 28] = struct.pack("<I", 10)
    data[22:26] = struct.pack("<I", 10)
    return bytes(data)


LAUGHS = (
    "<!DOCTYPE l [<!ENTITY l0 'ha'>"
    + "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
    + "]><l>&l9;</l>"
)
_SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"


def workbook(cells: str, strings: str = "") -> bytes:
    """Return a workbook of one sheet with this XML as its cells and as its shared strings."""
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{_TYPES}">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
            'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>'
            f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{types}.worksheet+xml"/>'
            f'<Override PartName="/xl/sharedStrings.xml" ContentType="{types}.sharedStrings+xml"/>'
            "</Types>",
            "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" '
            f'Type="{_OFFICE_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{_SPREADSHEET}" xmlns:r="{_OFFICE_RELATIONS}">'
            '<sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">'
            f'<Relationship Id="r1" Type="{_OFFICE_RELATIONS}/worksheet" '
            'Target="worksheets/sheet1.xml"/>'
            f'<Relationship Id="r2" Type="{_OFFICE_RELATIONS}/sharedStrings" '
            'Target="sharedStrings.xml"/></Relationships>',
            "xl/sharedStrings.xml": f'<sst xmlns="{_SPREADSHEET}">{strings}</sst>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_SPREADSHEET}"><sheetData>{cells}'
            "</sheetData></worksheet>",
        }
    )


def repeated_string(value: int, cells: int) -> bytes:
    """Return a workbook whose cells all refer to one long text, a thousand in a row."""
    row = '<c t="s"><v>0</v></c>' * 1_000
    rows = f"<row>{row}</row>" * (cells // 1_000)
    return workbook(rows, f"<si><t>{'a' * value}</t></si>")


def far_cells(last: str) -> bytes:
    """Return a workbook of two cells, the second at the end of a sheet."""
    number = last.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return workbook(
        f'<row r="1"><c r="A1"><v>1</v></c></row><row r="{number}"><c r="{last}"><v>2</v></c></row>'
    )


def pdf(content: bytes, *, filters: str = "/FlateDecode", pages: int = 1) -> bytes:
    """Return a PDF whose pages all show this stream, already packed as ``filters`` say."""
    kids = " ".join(f"{n} 0 R" for n in range(5, 5 + pages))
    page = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 3 0 R >> >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} /MediaBox [0 0 600 800] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Length {len(content)} /Filter [{filters}] >>\nstream\n".encode()
        + content
        + b"\nendstream",
        *[page.encode()] * pages,
    ]
    written = io.BytesIO()
    written.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(written.tell())
        written.write(b"%d 0 obj\n%b\nendobj\n" % (number, body))
    start = written.tell()
    written.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1))
    written.writelines(b"%010d 00000 n \n" % place for place in places)
    written.write(b"trailer << /Size %d /Root 1 0 R >>\n" % (len(places) + 1))
    written.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return written.getvalue()


def twice_packed(size: int) -> bytes:
    """Return so many blanks, packed twice by zlib."""
    packer = zlib.compressobj(9)
    block = b" " * (1 << 20)
    once = b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()
    return zlib.compress(once, 9)


def picture(width: int, height: int) -> bytes:
    """Return a PDF of one page that shows a black picture of so many dots."""
    packer = zlib.compressobj(9)
    row = bytes(width)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    image = (
        f"<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace "
        f"/DeviceGray /BitsPerComponent 8 /Length {len(data)} /Filter /FlateDecode >>\nstream\n"
    ).encode() + data + b"\nendstream"  # fmt: skip
    shown = zlib.compress(b"q 600 0 0 800 0 0 cm /I Do Q")
    sheet = pdf(shown).replace(b"/F 3 0 R >>", b"/F 3 0 R >> /XObject << /I 3 0 R >>")
    start, end = sheet.index(b"3 0 obj"), sheet.index(b"4 0 obj")
    return sheet[:start] + b"3 0 obj\n" + image + b"\nendobj\n" + sheet[end:]


def png(width: int, height: int) -> bytes:
    """Return a picture of nothing that says it has so many dots."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(bytes(1 << 20))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts
    )


def mail_of_parts(parts: int) -> bytes:
    """Return a message of many parts."""
    return b"Subject: s\nContent-Type: multipart/mixed; boundary=B\n\n" + b"--B\n\nx\n" * parts


def long_header(name: int, rows: int) -> bytes:
    """Return a table whose one column has a long name, which is said in every row."""
    return b"a" * name + b"\n" + b"x\n" * rows


def many_columns(columns: int, rows: int) -> bytes:
    """Return a table of many columns, and of rows that fill only the first."""
    return b",".join(b"c%d" % n for n in range(columns)) + b"\n" + b"x\n" * rows


def long_path(name: int, leaves: int) -> bytes:
    """Return an object whose one field has a long name, which is said of every item."""
    return json.dumps({"a" * name: list(range(leaves))}).encode()


def deep_paths(depth: int, leaves: int) -> bytes:
    """Return objects within objects, whose names are all said of every item."""
    items = ",".join("1" for _ in range(leaves))
    return ('{"name":' * depth + f"[{items}]" + "}" * depth).encode()


def repeated_envelope(beside: int, records: int) -> bytes:
    """Return records in an envelope with a long text beside them, which is metadata of each."""
    return json.dumps({"note": "a" * beside, "data": [{"text": "b"}] * records}).encode()


def repeated_rows(rows: int, value: int) -> bytes:
    """Return an OpenDocument sheet with one row that is said to be there very often."""
    space = "urn:oasis:names:tc:opendocument:xmlns"
    return zipped(
        {
            "content.xml": f'<o:d xmlns:o="{space}:office:1.0" xmlns:table="{space}:table:1.0" '
            f'xmlns:text="{space}:text:1.0"><table:table><table:table-row '
            f'table:number-rows-repeated="{rows}"><table:table-cell><text:p>{"a" * value}'
            "</text:p></table:table-cell></table:table-row></table:table></o:d>"
        }
    )


def nested_archive(depth: int) -> bytes:
    """Return an archive within an archive, and so on, around a large part."""
    data = zipped({"content.xml": b" " * 50_000_000})
    for _ in range(depth):
        data = zipped({f"{n}.zip": data for n in range(3)})
    return data


BOMBS: Mapping[str, Bomb] = {
    "dictionary.parquet": lambda: dictionary_column(315_000, 1_000),
    "dictionary-8gb.parquet": lambda: dictionary_column(10_000_000, 1_000, is_said=False),
    "nested.parquet": lambda: nested_dictionary_column(1_000_000, 1_000),
    "rows.parquet": lambda: empty_rows(50_000_000),
    "zeros.docx": lambda: zeros_in("word/document.xml", 100_000_000),
    "zeros.xlsx": lambda: zeros_in("xl/workbook.xml", 100_000_000),
    "zeros.epub": lambda: zeros_in("a.xhtml", 100_000_000),
    "media.docx": lambda: zeros_in("word/media/a.png", 100_000_000),
    "understated.odt": lambda: understated_zip("content.xml", 100_000_000),
    "understated.docx": lambda: understated_zip("word/document.xml", 100_000_000),
    "nested.docx": lambda: nested_archive(6),
    "nested.zip": lambda: nested_archive(6),
    "zeros.txt.gz": lambda: gzip.compress(bytes(30_000_000)),
    "laughs.docx": lambda: zipped({"word/document.xml": LAUGHS}),
    "laughs.epub": lambda: zipped({"META-INF/container.xml": LAUGHS}),
    "laughs.odt": lambda: zipped({"content.xml": LAUGHS}),
    "laughs.xlsx": lambda: zipped({"xl/workbook.xml": LAUGHS}),
    "laughs.html": lambda: LAUGHS.encode(),
    "far.xlsx": lambda: far_cells("XFD1048576"),
    "near.xlsx": lambda: far_cells("XFD9999"),
    "strings.xlsx": lambda: repeated_string(100_000, 900_000),
    "rows.ods": lambda: repeated_rows(1_048_576, 1_000),
    "flate.pdf": lambda: pdf(twice_packed(2_000_000_000), filters="/FlateDecode /FlateDecode"),
    "pages.pdf": lambda: pdf(
        zlib.compress(b"BT /F 9 Tf 9 9 Td" + b" (many words) Tj" * 20_000 + b" ET"), pages=2_000
    ),
    "picture.pdf": lambda: picture(40_000, 40_000),
    "line.csv": lambda: b"a,b\n" + b"x" * 48_000_000,
    "commas.csv": lambda: b"a,b\n" + b"," * 48_000_000,
    "header.csv": lambda: long_header(500_000, 250_000),
    "columns.csv": lambda: many_columns(100_000, 100_000),
    "rows.csv": lambda: b"a\n" + b"x\n" * 24_000_000,
    "path.json": lambda: long_path(500_000, 100_000),
    "paths.json": lambda: deep_paths(900, 500_000),
    "envelope.json": lambda: repeated_envelope(500_000, 30_000),
    "deep.json": lambda: b"[" * 100_000,
    "lists.json": lambda: b"[" + b"[]," * 16_000_000 + b"[]]",
    "deep.jsonl": lambda: b"[" * 100_000 + b"]" * 100_000,
    "deep.html": lambda: b"<div>" * 100_000 + b"x",
    "tables.html": lambda: b"<table><tr><td>" * 100_000 + b"x",
    "deep.md": lambda: b"> " * 100_000 + b"x",
    "lists.md": lambda: b"\n".join(b" " * n + b"- x" for n in range(3_000)),
    "include.rst": lambda: b".. include:: /etc/passwd\n\nx",
    "deep.ipynb": lambda: b'{"cells":' + b"[" * 100_000,
    "huge.png": lambda: png(60_000, 60_000),
    "parts.eml": lambda: mail_of_parts(10_000),
    "quotes.csv": lambda: b'a,b\n"' + b'x,"\n' * 5_000_000,
}
"""Bombs by the names of their files: those of one kind after the other."""
