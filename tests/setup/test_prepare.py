"""What is prepared before serving: a folder that cannot be written is named by its setting."""

import pytest

from config import prepare

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("setting", "demo"), [("STATIC_ROOT", False), ("MEDIA_ROOT", True)])
def test_folder_that_cannot_be_written_is_named_by_its_setting(settings, tmp_path, setting, demo):
    (tmp_path / "file").touch()
    settings.STATIC_ROOT = str(tmp_path / "static")
    setattr(settings, setting, str(tmp_path / "file" / "folder"))
    with pytest.raises(SystemExit, match=rf"^setup: {setting} names .*/file/folder, which cannot be written"):
        prepare.main(demo=demo)
