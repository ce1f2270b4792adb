"""The file that says which websites are watched."""

from pathlib import Path

from headrace.adapters.engine.watched_websites import WatchedWebsites


def test_workers_see_what_the_engine_process_writes(tmp_path: Path) -> None:
    writer, reader = (WatchedWebsites(tmp_path / "watched") for _ in range(2))
    assert not reader.has("a")
    writer.write(("a", "b"))
    assert (reader.has("a"), reader.has("b"), reader.has("c")) == (True, True, False)
    writer.write(("c",))
    assert (reader.has("a"), reader.has("c")) == (False, True)
    writer.write(())
    assert not reader.has("c")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_gone_is_no_error(tmp_path: Path) -> None:
    watched = WatchedWebsites(tmp_path / "gone" / "watched")
    watched.write(("a",))
    assert not watched.has("a")
