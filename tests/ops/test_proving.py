"""Block hashes that a person gives to be believed: read whole, or refused with the line that does not fit."""

from __future__ import annotations

import pytest

from ops.proving import published_hashes
from ops.reading import WrongUse

ONE, TWO = "0x" + "1a" * 32, "0x" + "2b" * 32


def test_lines_are_a_number_and_a_hash(tmp_path):
    file = tmp_path / "hashes"
    file.write_text(f"7 {ONE}\n\n  8\t{TWO.replace('b', 'B')} \n7 {ONE}\n")
    assert published_hashes(file) == {7: ONE, 8: TWO}


@pytest.mark.parametrize("line", ["7", f"{ONE} 7", f"7 {ONE[:-1]}", f"7 {ONE}0", f"-7 {ONE}", f"7 {ONE[:-1]}g", f"7 {ONE} x", f"7 {TWO}"])
def test_another_line_is_refused_by_its_number(tmp_path, line):
    file = tmp_path / "hashes"
    file.write_text(f"7 {ONE}\n{line}\n")
    with pytest.raises(WrongUse, match="line 2 of "):
        published_hashes(file)


@pytest.mark.parametrize("data", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, data):
    file = tmp_path / "hashes"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(WrongUse, match="cannot be read"):
        published_hashes(file)
