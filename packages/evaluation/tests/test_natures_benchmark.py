"""What methods find on questions of several natures is compared with the record, and shown."""

import json
from argparse import Namespace
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks import natures
from benchmarks.method_record import PAGE
from benchmarks.natures import Scores, moved, ndcg, read_record, scored, sets, shown, write_record
from benchmarks.question_sets import Asked

ROW = Scores(recall_at_5=[1.0, 0.0] * 20, ndcg_at_10=[0.5, 0.25] * 20)


def test_the_page_shows_the_table_of_the_record():
    recorded = read_record()
    assert recorded
    assert shown(recorded) in PAGE.read_text("utf-8")


def test_gain_falls_with_the_place_of_gold_documents():
    asked = Asked("?", frozenset("ab"))
    gains = [ndcg(asked, found) for found in ("ab", "xab", "xxa", "x" * 10 + "ab")]
    assert gains[0] == 1
    assert gains == sorted(gains, reverse=True)
    assert gains[3] == 0
    assert ndcg(Asked("?", frozenset("a")), "xa") == pytest.approx(1 / 1.58496, rel=1e-4)


def test_all_gold_documents_are_there_only_where_recall_is_whole():
    row = scored([Asked("?", frozenset("ab"))] * 2, ["xa", "axb"])
    assert (row.recall_at_5, row.all_at_5) == ([0.5, 1.0], [0.0, 1.0])
    assert row.half(1).recall_at_5 == [1.0]


def test_what_is_as_recorded_has_not_moved():
    one_less = replace(ROW, recall_at_5=[0.5, *ROW.recall_at_5[1:]])
    assert moved({"news": {"ppr": one_less}}, {"news": {"ppr": ROW}}) == []


def test_what_moves_by_more_than_chance_is_said():
    worse = replace(ROW, ndcg_at_10=[0.25] * 40)
    lines = moved({"news": {"ppr": worse, "new": ROW}}, {"news": {"ppr": ROW}})
    assert "ndcg_at_10 of ppr was 37.5 and is 25.0 (-12.5 [" in lines[0]
    assert "new is not in the record" in lines[1]
    assert len(lines) == 2


def test_the_command_fails_where_something_moved(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(natures, "sets", lambda _: [SimpleNamespace(name="news")])
    monkeypatch.setattr(natures, "measure", lambda *_: {"bm25": ROW})
    options = Namespace(data=tmp_path, homes=tmp_path, methods=None, record=False)
    for before, is_as_recorded in ((ROW, True), (replace(ROW, ndcg_at_10=[1.0] * 40), False)):
        monkeypatch.setattr(natures, "read_record", lambda row=before: {"news": {"bm25": row}})
        assert natures.main(options) == is_as_recorded
    assert "ndcg_at_10 of bm25 was 100.0" in capsys.readouterr().out


def test_a_record_keeps_what_was_not_measured_again(tmp_path):
    page, record = tmp_path / "page.md", tmp_path / "record.json"
    page.write_text(f"before\n{natures.BEGIN}old\n{natures.END}after\n")
    write_record({"news": {"bm25": ROW, "ppr": ROW}}, record, page)
    write_record({"news": {"ppr": replace(ROW, recall_at_5=[1.0] * 40)}}, record, page)
    assert read_record(record)["news"]["bm25"] == ROW
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| news | `ppr` | 100.0 |" in text
    assert "+50.0 [" in text


def test_gold_documents_are_known_by_their_rows(tmp_path):
    docs = [{"id": key, "title": "T", "text": "same text"} for key in ("n8", "n2")]
    made = {"docs": docs, "questions": [{"question": "?", "gold": ["n2"]}]}
    (tmp_path / "natures").mkdir()
    (tmp_path / "natures" / "own.json").write_text(json.dumps(made))
    (asked,) = sets(tmp_path)
    folder = tmp_path / "documents"
    folder.mkdir()
    asked.write(folder)
    assert len((folder / "passages.jsonl").read_text().splitlines()) == 2
    assert asked.questions[0].gold == {asked.key({"uri": "documents/passages.jsonl#row-2"})}
