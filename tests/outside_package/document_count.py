"""document_count.py: an asset in Dagster that follows what an index publishes."""

import dagster as dg

from graphrag_pipeline.marts.sql import query_published

COUNT = "SELECT count(*) FROM documents"


def definitions(building):
    names, home = building.names, building.settings.home_path

    @dg.asset(
        key=names.key("document_count"),
        deps=[names.key("published_index")],
        group_name=names.name("field_notes"),
    )
    def document_count() -> dg.MaterializeResult:
        """How many documents are published."""
        _, rows = query_published(home, COUNT)
        return dg.MaterializeResult(metadata={"documents": rows[0][0]})

    return [dg.Definitions(assets=[document_count])]
