"""Looking at files that come and go."""

from pathlib import Path

from testing.files import files_with, look_again


def test_files_that_contain_bytes_are_found_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "store" / "part").mkdir(parents=True)
    found = [tmp_path / "log", tmp_path / "store" / "part" / "data.bin"]
    for file in found:
        file.write_bytes(b"\xff secret \xff")
    (tmp_path / "other").write_bytes(b"public")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    assert files_with(tmp_path, b"secret") == found
    assert files_with(tmp_path, b"nothing") == []


def test_directory_whose_file_has_gone_meanwhile_is_read_again(tmp_path: Path) -> None:
    part = tmp_path / "tmp_insert_1"
    part.mkdir()
    looks: list[list[Path]] = []

    def look() -> list[str]:
        looks.append(list(tmp_path.iterdir()))
        if len(looks) == 1:
            part.rename(tmp_path / "all_1_1_0")
        return [path.name for path in looks[-1] if path.stat()]

    assert look_again(look) == ["all_1_1_0"]
    assert len(looks) == 2
