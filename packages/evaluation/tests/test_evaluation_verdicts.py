"""Win rates, position bias and winners, from verdicts: ours, recorded ones, and worked by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy
from graphrag_evaluation.judging.judgment_files import read_judgment_files, read_judgments
from graphrag_evaluation.judging.verdict_text import explain
from graphrag_evaluation.judging.verdicts import (
    Comparison,
    Verdict,
    Won,
    compare_verdicts,
    holm,
    normality,
    signed_rank,
    win_rate_matrix,
)
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError

CRITERIA = ["comprehensiveness", "diversity", "empowerment", "overall"]
PAPER = Path(__file__).parents[4] / "shared" / "papers" / "graphrag.txt"
TURNED: dict[str, Won] = {"first": "second", "second": "first", "tie": "tie"}
A_WINS, B_WINS, FIRST, A_OR_TIE = (
    ("first", "second"),
    ("second", "first"),
    ("first", "first"),
    ("first", "tie"),
)


def judged(*answers: Sequence[Won], a: str = "A", b: str = "B") -> list[Verdict]:
    """For each question the winner with a's answer shown first, and with b's."""
    return [
        Verdict(f"q{n}", "overall", *shown, winner)
        for n, (ahead, behind) in enumerate(answers)
        for shown, winner in (((a, b), ahead), ((b, a), behind))
    ]


def only(verdicts: Sequence[Verdict]) -> Comparison:
    (found,) = compare_verdicts(verdicts)
    return found


# Recorded judgments


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("other", "rates", "overall_first"),
    [
        ("graphrag", [59.5, 69.5, 61.5, 64.0], 76.0),
        ("lightrag", [55.5, 67.0, 58.5, 59.0], 81.0),
        ("fastgraphrag", [100.0, 99.5, 100.0, 100.0], 50.0),
        ("kag", [99.0, 95.0, 95.5, 98.5], 50.5),
    ],
)
def test_recorded_judgments_give_the_published_win_rates_and_the_bias(
    shared_data: Path, other: str, rates: list[float], overall_first: float
) -> None:
    file = shared_data / "judgments" / f"cs_hirag_vs_{other}.jsonl"
    done = CliRunner().invoke(app, ["eval", "winrate", str(file), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["comparisons"]
    assert [one["criterion"] for one in found] == CRITERIA
    assert [one["win_rate"] for one in found] == rates
    assert {(one["questions"], one["verdicts"], one["ties"]) for one in found} == {(100, 200, 0)}
    assert found[-1]["first_chosen"] == overall_first
    assert found[-1]["biased"] == (overall_first > 60)


@pytest.mark.shared_data
def test_it_is_said_what_the_bias_does_to_significance(shared_data: Path) -> None:
    file = shared_data / "judgments" / "cs_hirag_vs_lightrag.jsonl"
    found = compare_verdicts(read_judgments(file))[-1]
    assert (found.agreed, found.agreed_wins, found.consistent) == (38, 28, 0.38)
    assert (found.win_rate_first, found.win_rate_second) == (0.9, 0.28)
    assert max(found.p_first, found.p_second) < 1e-4
    said = CliRunner().invoke(app, ["eval", "winrate", str(file)])
    text = said.stdout[said.stdout.index("overall: ") :]
    assert "biased towards the answer shown first" in text
    assert "chosen in 81.0 %" in text
    assert "On 62 of 100 questions the two orders differ" in text
    assert "either order alone would have found a winner, not the same one" in text
    assert "would give p = 0.013 instead of p = 0.0035: not sure enough" in text


@pytest.mark.shared_data
def test_several_files_are_corrected_together(shared_data: Path) -> None:
    files = sorted((shared_data / "judgments").glob("*_vs_*.jsonl"))
    together = compare_verdicts(read_judgment_files(files))
    alone = {
        (one.criterion, one.condition_b): one.p
        for file in files
        for one in compare_verdicts(read_judgments(file))
    }
    for criterion in CRITERIA:
        family = [one for one in together if one.criterion == criterion]
        expected = holm([alone[criterion, one.condition_b] for one in family])
        assert [one.p_corrected for one in family] == expected
    pairs = {tuple(sorted((one.condition_a, one.condition_b))) for one in together}
    assert len(pairs) == 4
    with pytest.raises(InputError, match="of the same pair"):
        read_judgment_files([files[0], files[0]])


# Statistics


@pytest.mark.parametrize(
    "p",
    [[0.01, 0.04, 0.03, 0.005, 0.5, 0.04]],
)
def test_holm_is_that_of_statsmodels(p: list[float]) -> None:
    # statsmodels 0.15: multipletests(p, method="holm")
    assert holm(p) == pytest.approx([0.05, 0.12, 0.12, 0.03, 0.5, 0.12])


@pytest.mark.shared_data
def test_holm_gives_the_corrected_p_values_of_the_graphrag_paper() -> None:
    """Table 6 gives Z to two digits, and so raw p values to about 0.006."""
    if not PAPER.is_file():
        pytest.skip(f"the paper is not at {PAPER}")
    dataset = r" ([\d.]+) ([\d.]+) (-?[\d.]+) (<?[\d.]+)"
    rows = re.findall(
        rf"[CTS]\w [CTS]\w{dataset}{dataset}",
        PAPER.read_text().partition("Condition1 Condition2 Mean1")[2],
    )
    assert len(rows) == 4 * 15
    for z, published in ((2, 3), (6, 7)):
        for start in range(0, 60, 15):
            metric = rows[start : start + 15]
            raw = 2 * scipy.stats.norm.sf([abs(float(row[z])) for row in metric])
            for ours, row in zip(holm(raw.tolist()), metric, strict=True):
                theirs = row[published]
                if theirs.startswith("<"):
                    assert ours < 0.0015
                else:
                    assert ours == pytest.approx(float(theirs), abs=0.007)


def test_scores_rates_and_tests_of_a_case_worked_by_hand() -> None:
    found = only(
        judged(*[A_WINS] * 9, *[B_WINS] * 2, *[FIRST] * 5, *[A_OR_TIE] * 3, ("tie", "tie"))
    )
    scores = np.array([1.0] * 9 + [0.0] * 2 + [0.5] * 5 + [0.75] * 3 + [0.5])
    assert found.win_rate == scores.mean()
    assert (found.questions, found.verdicts, found.ties) == (20, 40, 5 / 40)
    assert found.first_chosen == (9 + 2 + 10 + 3) / 35
    assert (found.agreed, found.agreed_wins, found.consistent) == (11, 9, 12 / 20)
    assert found.win_rate_first == (9 + 5 + 3 + 0.5) / 20
    assert found.win_rate_second == (9 + 1.5 + 0.5) / 20
    expected = scipy.stats.wilcoxon(2 * scores - 1, zero_method="wilcox", method="asymptotic")
    assert found.z == pytest.approx(expected.zstatistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.p_agreed == scipy.stats.binomtest(9, 11).pvalue
    assert found.p_naive == scipy.stats.binomtest(9 * 2 + 5 + 3, 35).pvalue
    interval = scipy.stats.bootstrap(
        (scores,), np.mean, method="percentile", n_resamples=5000, rng=1
    ).confidence_interval
    assert found.win_rate_low == pytest.approx(interval.low, abs=0.02)
    assert found.win_rate_high == pytest.approx(interval.high, abs=0.02)


def test_few_questions_are_tested_exactly() -> None:
    """Five wins of five are two in 32 by chance; the normal approximation says 0.025."""
    assert signed_rank(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]))[1] == pytest.approx(2 / 32)
    assert only(judged(*[A_WINS] * 5)).winner == ""
    assert signed_rank(np.zeros(4)) == (None, 1.0)
    unequal = np.array([0.5, 1.0, -1.0, 0.5, 1.0, 0.5, 1.0])
    assert signed_rank(unequal)[1] == pytest.approx(scipy.stats.wilcoxon(unequal).pvalue)


def test_replicates_are_averaged_before_the_test() -> None:
    """A question judged again and again is one observation, and the two orders weigh the same."""
    many = [
        Verdict(
            question=one.question,
            criterion=one.criterion,
            first=one.first,
            second=one.second,
            winner=one.winner,
            replicate=n,
        )
        for one in judged(*[A_WINS] * 5)
        for n in range(20)
    ]
    assert only(many).p == only(judged(*[A_WINS] * 5)).p
    uneven = [
        *judged(A_WINS),
        Verdict(
            question="q0", criterion="overall", first="A", second="B", winner="second", replicate=1
        ),
    ]
    assert only(uneven).win_rate == pytest.approx((0.5 + 1) / 2)


def test_turning_the_conditions_round_turns_the_win_rate_round() -> None:
    verdicts = judged(*[A_WINS] * 20, *[B_WINS] * 7, *[FIRST] * 4, *[A_OR_TIE] * 5)
    (one,), (other,) = compare_verdicts(verdicts), compare_verdicts(verdicts, ["B", "A"])
    assert (other.condition_a, other.win_rate) == ("B", pytest.approx(1 - one.win_rate))
    assert (other.p, other.winner) == (pytest.approx(one.p), one.winner)
    assert (other.first_chosen, other.consistent) == (one.first_chosen, one.consistent)
    turned = [
        Verdict(v.question, v.criterion, v.first, v.second, TURNED[v.winner]) for v in verdicts
    ]
    assert only(turned).winner == "B"


# Winners


def test_a_judge_that_always_prefers_the_first_is_biased_and_yields_no_winner() -> None:
    found = only(judged(*[FIRST] * 60))
    assert (found.first_chosen, found.is_biased) == (1.0, True)
    assert (found.win_rate, found.p, found.winner) == (0.5, 1.0, "")
    assert max(found.p_first, found.p_second) < 1e-9
    text = explain(found)
    assert "no winner" in text
    assert "biased towards the answer shown first" in text
    assert "either order alone would have found a winner, not the same one" in text


def test_a_fair_judge_yields_a_winner_and_no_bias() -> None:
    found = only(judged(*[A_WINS] * 30, *[B_WINS] * 5))
    assert (found.winner, found.is_biased, found.first_chosen) == ("A", False, 0.5)


def test_what_only_one_order_knows_makes_no_winner() -> None:
    """A wins whenever it is shown first, and shown second all are ties: p is small."""
    found = only(judged(*[A_OR_TIE] * 40))
    assert found.p_corrected < 0.001
    assert found.winner == ""
    assert "order may explain it" in explain(found)


def test_a_pair_that_is_significant_alone_need_not_be_among_many() -> None:
    verdicts = judged(*[A_WINS] * 16, *[B_WINS] * 5)
    assert only(verdicts).winner == "A"
    others = [v for c in "CDEF" for v in judged(A_WINS, B_WINS, a="A", b=c)]
    found = {one.condition_b: one for one in compare_verdicts([*verdicts, *others])}
    assert found["B"].p_corrected == pytest.approx(5 * found["B"].p)
    assert found["B"].winner == ""


def test_ties_alone_are_no_bias_and_no_winner() -> None:
    found = only(judged(*[("tie", "tie")] * 4))
    assert (found.first_chosen, found.is_biased, found.winner) == (None, False, "")
    assert (found.z, found.consistent, found.ties) == (None, 1.0, 1.0)
    assert "All verdicts are ties" in explain(found)


def test_the_matrix_is_that_of_figure_2() -> None:
    verdicts = [*judged(A_WINS, A_WINS, FIRST, B_WINS), *judged(A_WINS, a="C", b="A")]
    found = compare_verdicts(verdicts, ["A", "B", "C"])
    assert win_rate_matrix(found, "overall", ["A", "B", "C"]) == [
        [0.5, 0.625, 0.0],
        [0.375, 0.5, None],
        [1.0, None, 0.5],
    ]


# Files


def line(**given: object) -> str:
    row = {"question": "q", "criterion": "Overall", "first": "A", "second": "B", "winner": "tie"}
    return json.dumps({**row, **given})


def recorded(*winners: str) -> str:
    return "".join(json.dumps({"Overall Winner": {"Winner": one}}) + "\n" for one in winners)


def test_our_own_form_is_read_and_what_has_one_order_only_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    both = [line(winner="first"), "", line(first="B", second="A", winner="second", replicate=1)]
    file.write_text("\n".join([*both, line(question="alone")]))
    assert read_judgments(file)[1] == Verdict(
        question="q", criterion="overall", first="B", second="A", winner="second", replicate=1
    )
    done = CliRunner().invoke(app, ["eval", "winrate", str(file), "--json"])
    (found,) = json.loads(done.stdout)["comparisons"]
    assert (found["questions"], found["win_rate"]) == (1, 100.0)
    assert "1 judged in one order only left out" in done.stderr
    file.write_text(line())
    refused = CliRunner().invoke(app, ["eval", "winrate", str(file)])
    assert refused.exit_code == 2
    assert "no question is judged in both orders" in refused.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no judgments"),
        (line() + "\n{broken", "line 2: it is not JSON"),
        (line() + "\n[1]", "line 2: it is no JSON object"),
        (line() + "\n\n" + line(winner="A"), 'line 3: "winner" must be'),
        (line(question=7), 'line 1: "question" must be a text'),
        (line(second="A"), "line 1: .* must be two conditions"),
        (line(replicate="x"), 'line 1: "replicate" must be'),
        (recorded("Answer 1"), "has 1 judgments: the second half"),
        (recorded("Answer 1", "Answer 3"), 'line 2: "Overall Winner" must have a "Winner"'),
        (recorded("Answer 1") + '{"Overall": {}}', 'line 2: "Overall Winner" must have'),
        (recorded("Tie") + '{"Overall Winner": {"Winner": "Tie"}, "More": 1}', 'line 2: .* "More"'),
    ],
)
def test_a_malformed_line_is_told_with_its_number(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "a_vs_b.jsonl"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_judgments(file)


def test_shapiro_and_wilk_tell_scores_that_are_not_normal() -> None:
    # The weights of eleven men, in pounds: Shapiro and Wilk (1965), section 4, W = .79.
    weights = np.array([148, 154, 158, 160, 161, 162, 166, 170, 182, 195, 236], np.float64)
    assert normality(weights) == pytest.approx(0.0067, abs=3e-4)
    assert normality(np.linspace(-1, 1, 20) ** 3) > normality(np.array([0.0] * 19 + [1.0]))
    assert normality(np.ones(9)) is None
    assert normality(np.array([0.0, 1.0])) is None


def test_a_comparison_says_how_far_its_scores_are_from_normal() -> None:
    verdicts = [
        Verdict(f"q{n}", "overall", *pair, "first" if (pair[0] == "A") == (n < 18) else "second")
        for n in range(20)
        for pair in (("A", "B"), ("B", "A"))
    ]
    (found,) = compare_verdicts(verdicts, ["A", "B"])
    assert found.p_normal is not None
    assert found.p_normal < 1e-6
