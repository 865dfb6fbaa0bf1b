"""The first set-up writes secrets of its own, for its owner only, and never over existing ones."""

from config import newenv
from config.env import parse_file


def test_new_env_is_private_and_kept(tmp_path):
    place = tmp_path / "var" / "env"
    assert newenv.write(place)
    assert place.stat().st_mode & 0o077 == 0
    first = parse_file(place)
    assert not newenv.write(place)
    assert parse_file(place) == first


def test_two_installations_share_no_secret(tmp_path):
    newenv.write(tmp_path / "a")
    newenv.write(tmp_path / "b")
    a, b = parse_file(tmp_path / "a"), parse_file(tmp_path / "b")
    assert a["SECRET_KEY"] != b["SECRET_KEY"]
    assert a["AUDIT_KEY"] not in (b["AUDIT_KEY"], a["SECRET_KEY"])
