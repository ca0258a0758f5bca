"""subtitles.py: WebVTT subtitles become text, a line for each cue."""

import re

from graphrag_pipeline.ingest.reading import FileFormat, Unreadable, whole_document

TAG = re.compile(r"<[^<>\n]*>")


def read_subtitles(path, data, options):
    text = data.decode(options.encoding or "utf-8-sig", "replace").replace("\r\n", "\n")
    if not text.startswith("WEBVTT"):
        raise Unreadable("the file does not begin with WEBVTT")
    return whole_document(path, "\n".join(filter(None, map(spoken, text.split("\n\n")))))


def spoken(block):
    """Return the words of a cue on one line; of a note or a style, nothing."""
    cue = block.partition(" --> ")[2]
    return " ".join(TAG.sub("", cue.partition("\n")[2]).split())


VTT = FileFormat(read_subtitles, versions={"subtitles": "1"}, safe_bytes=1_000_000)
