"""What the pages show, run as it stands there."""

import pathlib
import re

import farpath
import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_runs(client, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("altair")
    monkeypatch.chdir(tmp_path)
    # The page's scheduler is the reader's own.
    monkeypatch.setattr(distributed, "Client", lambda address: client)
    names = {}
    # The frames of the second page are of the folder that sweeps of the first have made.
    for page in ("python.md", "sweeps.md"):
        blocks = BLOCK.findall((DOCS / page).read_text())
        assert blocks, page
        for block in blocks:
            exec(compile(block, page, "exec"), names)
    assert isinstance(names["run"].goodput, farpath.Rate)
    assert pathlib.Path("cwnd.svg").read_bytes().startswith(b"<svg")
    # It has seeds that the first sweep has added, too.
    assert names["flows"].collect()["point"].n_unique() == names["points"].height == 5
    assert names["flows"].collect().height > names["sweep"].flows.height


def test_every_name_is_in_the_reference():
    reference = (DOCS / "python-reference.md").read_text()
    hidden = {"PROGRAM", "Table", "__version__"}
    missing = [name for name in farpath.__all__ if name not in hidden and f":: farpath.{name}\n" not in reference]
    assert not missing
