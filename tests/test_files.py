"""Files are written whole, in their place (_files.py)."""

import os
import threading

import pytest

from skmargin._files import atomic_write


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write(b"part")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    with atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_that_is_not_there_is_an_error_about_the_file_that_was_named(tmp_path):
    path = tmp_path / "none" / "a"
    with pytest.raises(FileNotFoundError) as caught, atomic_write(path):
        pass
    assert caught.value.filename == os.path.realpath(path)


@pytest.mark.skipif(os.name == "nt", reason="links need a right of their own there")
def test_links_keep_their_place(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "a", tmp_path / "link"
    link.symlink_to(target)
    for content in (b"first", b"second"):  # to a file that is not there, and to one that is
        with atomic_write(link) as file:
            file.write(content)
        assert link.is_symlink()
        assert target.read_bytes() == content


@pytest.mark.skipif(os.name == "nt", reason="no named pipes in folders there")
def test_pipes_stay_pipes(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with atomic_write(pipe) as file:
        file.write(b"text")
    reader.join(10)
    assert read == [b"text"]
    assert pipe.is_fifo()


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no names for open files there")
def test_a_pipe_without_a_place_is_written_to():
    ours, theirs = os.pipe()
    try:
        with atomic_write(f"/dev/fd/{theirs}") as file:  # as /dev/stdout in a pipeline
            file.write(b"text")
        assert os.read(ours, 10) == b"text"
    finally:
        os.close(ours)
        os.close(theirs)
