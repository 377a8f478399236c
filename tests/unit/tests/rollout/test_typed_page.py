"""What of a page is typed and compared; and docs/users.md has nothing that nobody types or writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rollout.typed_page import File, Line, PageError, expected, plain, steps

PROJECT = Path(__file__).resolve().parents[4]
PAGE = """\
Write `a.sh`:

<!-- file: a.sh -->
```bash
#!/bin/bash
echo 1
```

* and then:

  ```console
  [alice@hal-login ~]$ sbatch a.sh      # comes back at once
  Submitted batch job 17
  (mine) [alice@hal05 x]$ true
  ```
"""


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_a_page_is_files_and_lines_with_what_they_say(tmp_path: Path) -> None:
    file, lines = steps(page(tmp_path, PAGE))
    assert file == File("a.sh", "#!/bin/bash\necho 1\n")
    assert isinstance(lines, list)
    first, second = lines
    assert (first.number, first.text) == (12, "sbatch a.sh      # comes back at once")
    assert first.says == ["Submitted batch job 17"]
    assert (first.prompt["venv"], first.prompt["node"]) == ("", "hal-login")
    assert (second.prompt["venv"], second.prompt["node"], second.says) == ("(mine) ", "hal05", [])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<!-- file: a.sh -->\n", "", r"page\.md:3: not a console, and no <!-- file: NAME --> before it"),
        ("[alice@hal-login ~]$ sbatch", "$ sbatch", r"page\.md:12: does not begin with a prompt: \$ sbatch"),
    ],
)
def test_a_block_that_nobody_could_follow_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(PageError, match=words):
        list(steps(page(tmp_path, PAGE.replace(old, new))))


@pytest.mark.parametrize(
    ("says", "output", "same"),
    [
        ([], "", True),
        ([], "x\n", False),
        (["Submitted batch job 17"], "Submitted  batch job 4\r\n", True),
        (["hal05 0,1 /home/alice 2020-01-02"], "\x1b[1mhal01\x1b[0m 0,1 /home/bob 2026-11-26\n", True),
        (["hal05 17"], "hal01 4\n", False),
        (["a ... b", "..."], "a x y b\nmore\nand more\n", True),
        (["a", "...", "b"], "a\nb\n", True),
        (["a", "...", "b"], "a\nx\n", False),
        (["(E) [x] 1.3.1..."], "(E) [x] 1.3.1\n", True),
        (["(E) [x] 1.3.1..."], "(E) [x] 1.301\n", False),
    ],
)
def test_what_varies_may_vary_and_nothing_else(says: list[str], output: str, same: bool) -> None:
    assert bool(expected(says, "bob").fullmatch(plain(output))) == same


def test_users_md_can_be_followed_from_beginning_to_end() -> None:
    """Each file is written before it is used, and what comes is said of a job whose number is known."""
    written: set[str] = set()
    lines: list[Line] = []
    for step in steps(PROJECT / "docs/users.md"):
        if isinstance(step, File):
            written.add(step.name)
            continue
        lines += step
        for line in step:
            words = line.text.split()
            assert words[0] != "sbatch" or words[1] in written, f"line {line.number}: {line.text}"
    assert len(written) >= 5
    assert len(lines) >= 40
