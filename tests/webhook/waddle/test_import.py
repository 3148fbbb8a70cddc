"""``import waddle``: the names of the library, and its policies as files."""

import webhook
from webhook import library, waddle


def test_every_name_of_the_library_is_there_to_be_seen():
    assert set(library.__all__) <= set(waddle.__all__) <= set(dir(waddle))
    assert set(library.__all__) <= set(dir(webhook))
    assert all(getattr(webhook, name) is getattr(waddle, name) for name in library.__all__)


def test_whatever_it_raises_has_one_base():
    raised = [getattr(waddle, name) for name in waddle.__all__ if name.endswith("Error")]

    assert all(issubclass(error, waddle.WaddleError) for error in raised)


def test_the_policies_that_come_with_it_are_files():
    assert (waddle.POLICIES / "general" / "required-labels" / "template.yaml").is_file()
