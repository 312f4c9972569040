"""PDFs that do harm are refused with a reason, in the time and memory that a reader may take; the service goes on."""

import threading

import hostile_pdfs as hostile
import pytest

from citerec.ground.errors import InputError
from citerec.markup.sections import PdfLimits, PdfReader, read_pdf

LIMITS = PdfLimits(memory=2**28, seconds=60)  # so much time that a busy machine changes nothing
SAID = {  # name -> what the refusal says
    "form_draws_itself": "needs more than 0.25 GB",
    "flate_in_flate": "needs more than 0.25 GB",
    "page_100_000_times": "has more than 3,000 pages",
    "headers_1_million": "is not a PDF",
    "a_pipe": "a device",
    "a_link_to_zeros": "a device",
    "a_folder": "a folder",
    "a_file_of_20_gb": "is larger than 1 GB",
}


def test_each_is_refused_with_its_reason(tmp_path):
    with PdfReader(LIMITS) as reader:
        for name, said in SAID.items():
            with pytest.raises(InputError, match=said):
                reader.read(hostile.put(name, tmp_path))
        harmless = hostile.put("mask_masks_itself", tmp_path)
        assert reader.read(harmless).title.rstrip(".") == hostile.SAID.rstrip(".")


def test_what_takes_too_long_ends(tmp_path):
    with pytest.raises(InputError, match=r"takes longer than 0.5 s"):
        read_pdf(hostile.put("page_2_900_times_dense", tmp_path), PdfLimits(seconds=.5))


def test_a_reader_that_is_stopped_reads_nothing_more(tmp_path):
    path = hostile.put("page_2_900_times_dense", tmp_path)
    with PdfReader() as reader:
        timer = threading.Timer(.5, reader.stop)
        timer.start()
        with pytest.raises(InputError, match="the work was stopped"):
            reader.read(path)
        with pytest.raises(InputError, match="the work was stopped"):
            reader.read(path)
