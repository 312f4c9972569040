"""Takes the picture of the app that README and guides show: the built-in example "A paragraph", and its first card.

    python .ci/app_picture.py [nbs/images/app.png]      needs chromium
"""
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
MARGIN = 14  # pixels below the first card


def main(target: Path) -> None:
    """Open the app in JupyterLab, press the example and Recommend, and keep what stands from its head to one card."""
    from playwright.sync_api import expect
    from test_browser_recommend import opened_app

    with tempfile.TemporaryDirectory() as folder, opened_app(Path(folder)) as (page, *_):
        page.get_by_role("button", name="A paragraph", exact=True).click()
        page.get_by_role("button", name="Recommend", exact=True).click()
        first = page.locator(".citerec-card").first
        first.wait_for()
        expect(page.get_by_role("button", name="Recommend", exact=True)).to_be_enabled()
        view = page.locator(".jp-OutputArea-output").filter(has=first).first
        view.evaluate("view => view.scrollIntoView({block: 'start'})")
        app = view.bounding_box()
        card = first.bounding_box()
        assert app and card, "the app is not on the page"
        size = {"x": card["x"] - 10, "y": app["y"], "width": card["width"] + 20,
                "height": card["y"] + card["height"] + MARGIN - app["y"]}
        page.screenshot(path=str(target), clip=size)
        title = first.locator(".citerec-title a").inner_text().rpartition(" (")[0]
    print(f"{target}: {title}")
    if title not in (ROOT / "README.md").read_text(encoding="utf-8").partition("images/app.png")[0]:
        raise SystemExit(f"README says of its picture that it shows another paper first than {title!r}. Make it anew: "
                         "python .ci/app_picture.py")


if __name__ == "__main__": main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "nbs/images/app.png"))
