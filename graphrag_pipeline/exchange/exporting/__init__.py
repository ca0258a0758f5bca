"""A published release, written in the formats that other tools read."""

from graphrag_pipeline.exchange.exporting.formats import (
    EXPORTERS as EXPORTERS,
    export_release as export_release,
)
from graphrag_pipeline.exchange.exporting.writing import (
    Export as Export,
    Exporter as Exporter,
    Writer as Writer,
    WrittenFile as WrittenFile,
)
