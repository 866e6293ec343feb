"""Files that are complete or not there, and stay what they are: links, pipes, private files."""

import errno
import os
import stat
import threading

import pytest

from mixedgm.base.atomic import check_writable, replacing, write_bytes
from mixedgm.base.errors import ParameterError
from tests.support.load import PATIENCE

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and modes of POSIX")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.mgm"
    write_bytes(path, b"old")

    def fail():
        with replacing(path) as file:
            file.write(b"new")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.mgm"]


def test_a_full_disk_is_an_error_of_the_family(tmp_path, monkeypatch):
    path = tmp_path / "model.mgm"
    write_bytes(path, b"old")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ParameterError, match=r"model\.mgm' cannot be written: No space .* room"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.mgm"]


def test_what_a_killed_process_left_goes_when_it_is_old(tmp_path):
    others = [".model.mgm.notes", ".model.mgm.0123456789abcdef.part.txt", ".b.mgm.01234567.part"]
    for name in (".model.mgm.0123456789abcdef.part", *others):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".model.mgm.fedcba9876543210.part").write_bytes(b"of a process that is writing")
    write_bytes(tmp_path / "model.mgm", b"new")
    kept = ["model.mgm", ".model.mgm.fedcba9876543210.part", *others]
    assert sorted(os.listdir(tmp_path)) == sorted(kept)


@posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    (tmp_path / "dangling").symlink_to(tmp_path / "later")
    write_bytes(tmp_path / "dangling", b"new")
    assert (tmp_path / "later").read_bytes() == b"new"


@posix
def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_bytes(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    umask = os.umask(0o027)
    try:
        write_bytes(tmp_path / "fresh", b"new")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


@posix
def test_devices_and_pipes_are_written_to(tmp_path):
    write_bytes("/dev/null", b"nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"through")
    reader.join(PATIENCE)
    assert found == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["no/such/folder/file", "nul\0byte", "x" * 5000])
def test_impossible_names_are_errors_of_the_family(tmp_path, name):
    for work in (check_writable, lambda path: write_bytes(path, b"")):
        with pytest.raises(ParameterError):
            work(os.path.join(tmp_path, name))
    assert os.listdir(tmp_path) == []


def test_looking_leaves_nothing_behind(tmp_path):
    check_writable(tmp_path / "later.csv")
    assert os.listdir(tmp_path) == []
    with pytest.raises(ParameterError, match="is a folder"):
        check_writable(tmp_path)
