"""The sample corpus is sound."""

from conftest import ROOT, python


def test_sample_is_sound():
    """The script that checks schema, titles, years and edges finds nothing."""
    python(ROOT / "data" / "check_sample.py")
