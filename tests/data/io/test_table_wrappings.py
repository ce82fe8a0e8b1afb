"""Tables that are compressed, in archives, or in other encodings."""

import bz2
import gzip
import io
import lzma
import re
import zipfile

import pytest
from small_series import U, series

import nfsgeo
from nfsgeo.errors import UserError


def zipped(**members: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return stream.getvalue()


TEXT = series(U).to_csv(index=False)


@pytest.mark.parametrize(
    "content",
    [
        zipped(**{"a.csv": TEXT, "__MACOSX/._a.csv": "x"}),
        zipped(**{"a.csv": TEXT, "README.txt": "x", ".DS_Store": ""}),
        zipped(a=TEXT),
        zipped(**{"a.json": series(U).to_json(orient="records")}),
        TEXT.encode("utf-16-le"),
        TEXT.encode("utf-16-be"),
        series(U).to_json(orient="index").encode(),
        re.sub(r"(-\d\d-\d\d),", r"\1 00:00:00 UTC,", TEXT).encode(),
    ],
)
def test_other_wrappings(content, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    fields = nfsgeo.open(tmp_path / "a.csv")
    assert fields.component_names == ["u"] and len(fields.times) == 6


LONG = (TEXT + TEXT.partition("\n")[2] * 3000).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (zipped(**{"a.csv": TEXT, "b.csv": TEXT}), "an archive of 2 tables.*unzip"),
        (gzip.compress(TEXT.encode())[:-20], "cut off"),
        (bz2.compress(TEXT.encode())[:-20], "cut off"),
        (lzma.compress(TEXT.encode())[:-20], "cut off"),
        (gzip.compress(LONG)[:-20], "cut off"),
        (lzma.compress(TEXT.encode(), lzma.FORMAT_ALONE), "lzma"),
        (b"\x04\x22\x4d\x18" + bytes(99), "lz4"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(99), "7-Zip"),
        (b"", "an empty file"),
        (b"\n\n", "an empty file"),
        (TEXT.encode("utf-16")[:-1], "UTF-16"),
        (TEXT.replace("\n", "\n1,2,3,4,5\n", 1).encode(), "5 cells in row 1"),
        ((TEXT + "1,2,3,4,5\n").encode(), "5 cells in row 25"),
        (TEXT.replace("\n2", '\n"2', 1).encode(), "quote.*row 1"),
        (TEXT.replace(",0.1", ',"0.1').encode(), "remove the quote"),
        (b",a,b\n2000,1,2\n2001,2,3\n2002,3,4\n", "without a name"),
        (
            b'{"features": [{"properties": {"u": 1}, "geometry": null}]}',
            "feature 1.*no point",
        ),
    ],
)
def test_other_files_are_called_what_they_are(content, words, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(UserError, match=words):
        nfsgeo.open(tmp_path / "a.csv")
