"""An experiment's file that is wrong is told with its line, before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from graphrag_evaluation.experiment import read_experiment

from graphrag_pipeline.core.errors import InputError

WRONG = {
    'method = ["basic"]': "line 2: method: there is no such field: did you mean methods?",
    'methods = "basic"': "line 2: methods: 'basic' is no list: put it in brackets",
    'methods = ["local"]\nlevels = [0, "a"]': "line 3: levels 2: 'a' is no whole number",
    'limit = "two"': "line 2: limit: 'two' is no whole number",
    'methods = ["basic"]\n\n[judge]\nreplicate = 3': (
        "line 5: judge.replicate: there is no such field: did you mean replicates?"
    ),
    '[judge]\n# none\n[[condition]]\nmethod = "basic"\n[[condition]]\nmethd = "local"': (
        "line 6: condition 2.method: it is missing"
    ),
    "[relevance]\nat = []": "line 3: relevance.at: tuple should have at least 1 item",
    "[judge]\ncolour = 1": "line 3: judge.colour: there is no such field: there are model, ",
    'methods = ["basic:topk=3"]': "toml: basic:topk=3: method basic has no parameter topk: it has",
    'methods = ["basic:top_k=many"]': "toml: top_k = 'many': must be a whole number",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(f'questions = "asked.txt"\n{text}\n')
    with pytest.raises(InputError) as raised:
        read_experiment(file)
    assert str(raised.value).startswith(str(file))
    assert message in str(raised.value)
