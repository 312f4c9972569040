"""Lists of references in ten styles are found in PDFs and read; both thirds reach what is promised of them."""

from collections import Counter

import pytest
import reference_lists as lists

PROMISED = {"found": .98, "title": .93, "first author": .95, "year": .98}


def counted(listing, texts, entries):
    where = lists.matched(listing, texts)
    count = Counter({"of found": len(where), "found": sum(i is not None for i in where)})
    for record, text, i in zip(listing.records, listing.texts, where, strict=True):
        if i is None: continue
        for name, is_right in lists.right(record, text, entries[i]).items():
            count[f"of {name}"] += 1
            count[name] += is_right
    return count


def keeps_the_promise(count):
    return {name: count[name] / count[f"of {name}"] for name, share in PROMISED.items()
            if count[name] < share * count[f"of {name}"]}


@pytest.mark.parametrize("held_out", [False, True])
def test_references_are_read(held_out):
    total = Counter()
    for listing in lists.listings(lists.papers_of([]), held_out):
        texts = [lists.shown(text) for text in listing.texts]
        total += counted(listing, texts, lists.read_references(texts))
    assert total["of found"] == (400 if held_out else 800)
    assert not keeps_the_promise(total)


def test_references_are_found_in_pdfs():
    pytest.importorskip("fpdf")
    from reference_pdfs import listed
    total = Counter()
    for listing in lists.listings(lists.papers_of([]), True): total += counted(listing, *listed(listing))
    assert total["of found"] == 400
    assert not keeps_the_promise(total)
