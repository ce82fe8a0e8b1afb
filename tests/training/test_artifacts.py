"""Files that appear whole or not at all."""

import json
import os
from pathlib import Path

import pytest

from nfsgeo.errors import UserError
from nfsgeo.files import growing
from nfsgeo.training.artifacts import json_text, write_bytes


def test_an_exception_leaves_the_old_content(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"old")
    with pytest.raises(RuntimeError), growing(path) as temporary:
        temporary.write_bytes(b"half of the n")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_does_not_exist_is_named():
    with pytest.raises(UserError, match=r"folder .*nowhere: expected an existing"):
        write_bytes(Path("nowhere") / "a.gif", b"")


def test_json_has_no_number_for_nan():
    text = json_text({"a": float("nan"), "b": [1.5, float("inf")]})
    assert json.loads(text) == {"a": None, "b": [1.5, None]}
