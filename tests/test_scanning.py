"""Which files of a folder are documents: git's rules, the defaults, links."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from graphrag_pipeline.core.errors import ConfigError, InputError
from graphrag_pipeline.core.settings import InputSettings
from graphrag_pipeline.store.ignoring import selection_of
from graphrag_pipeline.store.scanning import LeftOut, Scan, scan_folder
from graphrag_pipeline.store.source_files import open_source


def write(folder: Path, *names: str, **texts: str) -> None:
    for name, text in {**dict.fromkeys(names, "x"), **texts}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def scan(folder: Path, **given: object) -> Scan:
    selection = selection_of(InputSettings.model_validate(given))
    return scan_folder(folder, folder / ".graphrag", selection)


def names(folder: Path, **given: object) -> set[str]:
    return set(scan(folder, **given).files)


def ignore(folder: Path, name: str, *lines: str) -> None:
    write(folder, **{name: "\n".join(lines) + "\n"})


def test_ignore_files_hold_for_their_folder_and_a_deeper_one_overrides(tmp_path):
    ignore(tmp_path, ".gitignore", "*.log", "/top.txt", "build/", "deep/**/cache", "!keep.log")
    ignore(tmp_path, "sub/.gitignore", "!*.log", "own.txt")
    ignore(tmp_path, "sub/.graphragignore", "secret.log")
    write(
        tmp_path,
        *("a.log", "keep.log", "top.txt", "build/x.txt", "deep/1/2/cache", "deep/cache/x"),
        *(
            "sub/a.log",
            "sub/secret.log",
            "sub/own.txt",
            "sub/top.txt",
            "sub/build",
            "other/own.txt",
        ),
    )
    expected = {"keep.log", "sub/a.log", "sub/top.txt", "sub/build", "other/own.txt"}
    assert names(tmp_path) == expected
    assert "a.log" in names(tmp_path, ignore_files=False)


def test_what_lies_in_a_folder_left_out_does_not_come_back(tmp_path):
    ignore(tmp_path, ".gitignore", "private/", "!private/plan.txt", "open/*", "!open/plan.txt")
    write(tmp_path, "private/plan.txt", "open/plan.txt", "open/other.txt")
    assert names(tmp_path) == {"open/plan.txt"}


PIECES = ("a", "b", "c.txt", "*", "**", "*.txt", "?", "[ab]", "[!a]*", "d e", "\\!x", "a\\ ")


def test_git_leaves_out_the_same_files_under_random_patterns(tmp_path):
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    chance = random.Random(7)
    files = [
        "/".join(chance.choice(("a", "b", "c.txt", "d e", "!x", "ab")) for _ in range(n))
        for n in (1, 2, 3, 4)
        for _ in range(30)
    ]
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in files:
            path = folder / f"{name}.end" if chance.random() < 0.3 else folder / name
            if not any(parent.is_file() for parent in path.parents) and not path.exists():
                write(folder, str(path.relative_to(folder)))
        for place in ("", "a/", "a/b/"):
            lines = [
                "!" * (chance.random() < 0.3)
                + "/" * (chance.random() < 0.2)
                + "/".join(chance.sample(PIECES, chance.choice((1, 1, 2, 3))))
                + "/" * (chance.random() < 0.2)
                for _ in range(4)
            ]
            if (folder / place).is_dir():
                ignore(folder, f"{place}.gitignore", *lines)
        subprocess.run([git, "init", "-q", folder], check=True)
        listed = subprocess.run(
            [git, "ls-files", "-z", "--others", "--exclude-standard"],
            cwd=folder, check=True, capture_output=True,
        ).stdout.decode().split("\0")  # fmt: skip
        expected = {name for name in listed if name and not name.endswith(".gitignore")}
        found = {n for n in names(folder, default_excludes=False) if not n.startswith(".git/")}
        assert {n for n in found if not n.endswith(".gitignore")} == expected, [
            (p.relative_to(folder), p.read_text()) for p in folder.rglob(".gitignore")
        ]


def test_what_programs_keep_is_left_out_unless_set(tmp_path):
    junk = (
        *(
            "node_modules/x/readme.md",
            ".git/config.txt",
            ".venv/a.txt",
            "venv/b.txt",
            ".hidden.txt",
        ),
        *(
            "__pycache__/a.txt",
            "package-lock.json",
            "sub/poetry.lock",
            ".tox/a.txt",
            "~$report.docx",
        ),
        *(".graphrag/output.txt", "pkg.egg-info/SOURCES.txt"),
    )
    write(tmp_path, "readme.md", "locks/lock.txt", *junk)
    assert names(tmp_path) == {"readme.md", "locks/lock.txt"}
    taken_back = names(tmp_path, exclude=["!package-lock.json", "!node_modules/"])
    assert taken_back - names(tmp_path) == {"package-lock.json", "node_modules/x/readme.md"}
    everything = names(tmp_path, default_excludes=False)
    assert everything == {"readme.md", "locks/lock.txt", *junk} - {".graphrag/output.txt"}


def test_include_names_what_is_read_and_exclude_takes_from_it(tmp_path):
    write(tmp_path, "a.md", "b.txt", "docs/c.md", "docs/d.txt", "docs/drafts/e.md")
    assert names(tmp_path, include=["*.md"]) == {"a.md", "docs/c.md", "docs/drafts/e.md"}
    assert names(tmp_path, include=["docs/"]) == {"docs/c.md", "docs/d.txt", "docs/drafts/e.md"}
    assert names(tmp_path, include=["docs/*.md"]) == {"docs/c.md"}
    assert names(tmp_path, include=["*.md", "!docs/drafts/"]) == {"a.md", "docs/c.md"}
    assert names(tmp_path, include=["*.md"], exclude=["drafts/"]) == {"a.md", "docs/c.md"}


def test_it_is_counted_what_is_left_out_and_by_which_rule(tmp_path):
    ignore(tmp_path, "sub/.gitignore", "*.log")
    write(tmp_path, "a.txt", "node_modules/1.txt", "node_modules/2.txt", "sub/a.log", "sub/b.log")
    found = scan(tmp_path, exclude=["/sub/c.md"], include=["*.txt", "*.log"])
    assert found.left_out == [
        LeftOut("sub/.gitignore", "*.log", 2, ("sub/a.log", "sub/b.log")),
        LeftOut("default", ".*", 1, ("sub/.gitignore",)),
        LeftOut("default", "node_modules/", 1, ("node_modules",)),
    ]
    first = scan(tmp_path, include=["*.md"]).left_out[0]
    assert (first.by, first.pattern, first.number) == ("sub/.gitignore", "*.log", 2)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "no pattern"),
        ("!", "no pattern"),
        ("/", "no pattern"),
        ("# drafts", "comment"),
        ("../other", "cannot leave the folder"),
        ("a\nb", "more than one line"),
        ("[ab", "not closed"),
        ("a\\", "no pattern"),
    ],
)
def test_a_broken_pattern_is_refused_with_the_reason(tmp_path, line, reason):
    for setting in ("include", "exclude"):
        with pytest.raises(ConfigError, match=f"input.{setting}: .*{reason}"):
            scan(tmp_path, **{setting: ["*.md", line]})


def test_a_broken_line_of_our_ignore_file_is_named_and_one_of_gits_is_passed_over(tmp_path):
    write(tmp_path, "a.txt", "b.txt")
    ignore(tmp_path, "sub/.gitignore", "[x", "b.txt")
    assert names(tmp_path) == {"a.txt", "b.txt"}
    ignore(tmp_path, "sub/.graphragignore", "# ok", "", "[x")
    with pytest.raises(InputError, match=r"sub/.graphragignore, line 3: '\[x' has a \["):
        scan(tmp_path)


def test_a_link_within_the_folder_is_another_name_and_one_out_of_it_is_left_out(tmp_path):
    folder = tmp_path / "documents"
    write(tmp_path, "outside/b.txt", "documents/a.txt", "documents/sub/c.txt")
    (folder / "again.txt").symlink_to("sub/c.txt")
    (folder / "out.txt").symlink_to(tmp_path / "outside" / "b.txt")
    (folder / "out").symlink_to(tmp_path / "outside")
    found = scan(folder)
    assert set(found.files) == {"a.txt", "again.txt", "sub/c.txt"}
    assert found.left_out == [LeftOut("links", "", 2, ("out", "out.txt"))]
    followed = scan(folder, follow_links=True)
    assert set(followed.files) == {"a.txt", "again.txt", "sub/c.txt", "out.txt", "out/b.txt"}
    assert followed.left_out == []


def test_a_linked_folder_is_gone_through_once_and_loops_end(tmp_path):
    folder = tmp_path / "documents"
    write(tmp_path, "documents/sub/a.txt", "documents/.store/b.txt", "outside/c.txt")
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "twice").symlink_to("sub")
    (folder / "shown").symlink_to(".store")
    (folder / "shown again").symlink_to(".store")
    (tmp_path / "outside" / "back").symlink_to(folder)
    (tmp_path / "outside" / "round").symlink_to(tmp_path)
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "self").symlink_to("self")
    assert names(folder) == {"sub/a.txt", "shown/b.txt"}
    assert names(folder, follow_links=True) == {"sub/a.txt", "shown/b.txt", "out/c.txt"}


def test_a_link_into_the_home_of_the_index_is_never_followed(tmp_path):
    write(tmp_path, "documents/a.txt", "documents/.graphrag/output.txt")
    (tmp_path / "documents" / "x").symlink_to(".graphrag")
    (tmp_path / "documents" / "y.txt").symlink_to(".graphrag/output.txt")
    assert names(tmp_path / "documents", follow_links=True) == {"a.txt"}


def test_what_cannot_be_read_at_all_is_counted_with_the_first_names(tmp_path):
    write(tmp_path, "a.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    for number in range(5):
        (tmp_path / f"broken {number}.txt").symlink_to("nowhere.txt")
    (tmp_path / "round.txt").symlink_to("round.txt")
    found = scan(tmp_path)
    assert set(found.files) == {"a.txt"}
    first = ("broken 0.txt", "broken 1.txt", "broken 2.txt")
    assert found.left_out == [
        LeftOut("broken links", "", 6, first),
        LeftOut("special files", "", 1, ("pipe.txt",)),
    ]


def test_chains_of_links_lead_where_their_last_one_does_and_a_linked_folder_can_be_scanned(
    tmp_path,
):
    folder = tmp_path / "documents"
    write(tmp_path, "outside.txt", "documents/a.txt")
    for name, target in (("1", "2"), ("2", "a.txt"), ("x1", "x2"), ("x2", "../outside.txt")):
        (folder / name).symlink_to(target)
    (folder / "up").symlink_to("..")
    (tmp_path / "linked").symlink_to("documents")
    for place in (folder, tmp_path / "linked"):
        found = scan(place)
        assert set(found.files) == {"1", "2", "a.txt"}
        assert found.left_out == [LeftOut("links", "", 3, ("up", "x1", "x2"))]


def test_a_file_swapped_for_something_else_after_the_scan_is_not_read(tmp_path):
    folder = tmp_path / "documents"
    write(tmp_path, "outside/a.txt", "documents/a.txt", "documents/sub/a.txt")
    (folder / "link.txt").symlink_to("sub/a.txt")
    (tmp_path / "linked").symlink_to("documents")
    for name in ("a.txt", "link.txt", "sub/a.txt"):
        for place in (folder, tmp_path / "linked"):
            with open_source(place / name, place) as file:
                assert file.read() == b"x"
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to("../outside/a.txt")
    shutil.rmtree(folder / "sub")
    (folder / "sub").symlink_to("../outside")
    os.mkfifo(folder / "pipe.txt")
    for name in ("a.txt", "sub/a.txt", "link.txt"):
        with pytest.raises(OSError, match="leads out of the folder"):
            open_source(folder / name, folder)
        with open_source(folder / name, None) as file:
            assert file.read() == b"x"
    with pytest.raises(OSError, match="not a regular file"):
        open_source(folder / "pipe.txt", folder)


def test_ten_thousand_files_under_many_patterns_are_scanned_in_a_second_of_cpu(tmp_path):
    for number in range(100):
        place = tmp_path / str(number)
        place.mkdir()
        for name in range(100):
            (place / f"{name}.txt").touch()
    before = os.times().user
    found = scan(tmp_path, exclude=[f"drafts-{n}*/" for n in range(20)])
    assert len(found.files) == 10_000
    assert os.times().user - before < 1


def test_a_folder_that_cannot_be_read_is_told_and_only_the_whole_folder_is_an_error(
    tmp_path, monkeypatch
):
    write(tmp_path, "a.txt", "closed/b.txt")
    listed = os.scandir

    def scandir(path):
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    seen = scan(tmp_path)
    assert (list(seen.files), seen.unreadable) == (["a.txt"], ["closed"])
    with pytest.raises(InputError, match=r"cannot read folder .*closed: Permission denied"):
        scan(tmp_path / "closed")
