"""Tests how a tool reads images and PDF, and which form each API and MCP gets."""

import io
import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pypdf import PdfReader, PdfWriter
from support.media import image_file, media_dialect, png

from handrail import ToolResult, Workspace
from handrail.model.limits import Limits
from handrail.ops.media_header import media_header
from handrail.surfaces.mcp.mcp_results import to_mcp

FORMS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def show(workspace: Workspace, root: Path, data: bytes, name: str = "a") -> Any:
    (root / name).write_bytes(data)
    return media_dialect(workspace).call("show", {"path": name})


@pytest.mark.parametrize("form", [*FORMS])
@pytest.mark.parametrize("size", [(1, 1), (640, 480), (1, 1999), (300, 7)])
def test_media_header_reads_what_pillow_wrote(form: str, size: tuple[int, int]) -> None:
    found = media_header(image_file(form, *size))
    assert found is not None
    assert (found.mime, found.width, found.height) == (FORMS[form], *size)


@pytest.mark.parametrize("lossless", [True, False])
def test_media_header_reads_webp_with_transparency(lossless: bool) -> None:
    made = io.BytesIO()
    Image.new("RGBA", (33, 44), (1, 2, 3, 4)).save(made, "WEBP", lossless=lossless)
    found = media_header(made.getvalue())
    assert found is not None
    assert (found.width, found.height) == (33, 44)


def test_media_header_reads_jpeg_behind_long_profile() -> None:
    made = io.BytesIO()
    Image.new("RGB", (120, 80)).save(made, "JPEG", icc_profile=b"p" * 300_000)
    found = media_header(made.getvalue())
    assert found is not None
    assert (found.width, found.height) == (120, 80)


@pytest.mark.parametrize("form", [*FORMS])
def test_media_small_image_stays_as_it_is_by_content(form: str, workspace: Workspace, root: Path) -> None:
    data = image_file(form, 640, 480)
    result = show(workspace, root, data, "no-image-by-name.txt")
    assert result.output == {"inlineData": {"mimeType": FORMS[form], "data": b64encode(data).decode()}}
    assert result.metadata == {"original": [640, 480], "shown": [640, 480]}


@pytest.mark.parametrize("form", [*FORMS])
def test_media_long_image_is_scaled_down(form: str, workspace: Workspace, root: Path) -> None:
    result = show(workspace, root, image_file(form, 5000, 2500))
    data = b64decode(result.output["inlineData"]["data"])
    assert result.metadata == {"original": [5000, 2500], "shown": [2000, 1000]}
    with Image.open(io.BytesIO(data)) as image:
        assert (image.size, Image.MIME[image.format or ""]) == ((2000, 1000), result.output["inlineData"]["mimeType"])


def test_media_heavy_image_is_made_to_fit_the_api(workspace: Workspace, root: Path) -> None:
    data = image_file("PNG", 1990, 3000, noise=True)
    assert len(data) > Limits().image_base64_bytes
    result = show(workspace, root, data)
    assert len(result.output["inlineData"]["data"]) <= Limits().image_base64_bytes
    assert result.output["inlineData"]["mimeType"] == "image/png" or result.metadata["shown"][1] > 500


def test_media_turned_photo_is_upright_when_scaled(workspace: Workspace, root: Path) -> None:
    made, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (4000, 1000), "red").save(made, "JPEG", exif=exif)
    assert show(workspace, root, made.getvalue()).metadata["shown"] == [500, 2000]


def test_media_without_pillow_is_original_or_refusal(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.runtime.read_media.can_scale", lambda: False)
    data = png(7000, 30, b"")
    assert b64decode(show(workspace, root, data).output["inlineData"]["data"]) == data
    refused = show(workspace, root, png(8001, 30, b""))
    assert refused.error.code == "image_too_large"
    assert "8001x30 pixels" in refused.error.message


def test_media_pdf_is_document_and_text_is_text(workspace: Workspace, root: Path) -> None:
    assert show(workspace, root, b"%PDF-1.7\n").output["inlineData"]["mimeType"] == "application/pdf"
    assert show(workspace, root, b"just text").output == "just text"
    assert show(workspace, root, b"%PDF-" + b"x" * Limits().pdf_bytes).error.code == "file_too_large"


def test_media_answers_use_form_of_each_api(workspace: Workspace, root: Path) -> None:
    data = image_file("PNG", 30, 20)
    (root / "a.png").write_bytes(data)
    router, text = media_dialect(workspace), b64encode(data).decode()
    said = f"The file is image/png, 30x20 pixels, {len(data)} bytes; it cannot be shown as text"
    arguments = json.dumps({"path": "a.png"})
    block = router.call_anthropic({"id": "1", "name": "show", "input": {"path": "a.png"}})
    assert block["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": text}}
    ]
    item = router.call_openai({"type": "function_call", "call_id": "1", "name": "show", "arguments": arguments})
    assert item["output"] == [{"type": "input_image", "image_url": f"data:image/png;base64,{text}"}]
    call = {"id": "1", "type": "function", "function": {"name": "show", "arguments": arguments}}
    assert router.call_openai(call)["content"] == said
    response = router.call_gemini({"name": "show", "args": {"path": "a.png"}})["functionResponse"]
    assert response["response"] == {"output": said}
    assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": text}}]
    result = router.call("show", {"path": "a.png"})
    assert result.text == said
    assert to_mcp(result)["content"] == [{"type": "image", "mimeType": "image/png", "data": text}]


def test_media_type_that_no_api_takes_is_said_in_words(workspace: Workspace, root: Path) -> None:
    (root / "a.bmp").write_bytes(b"BM")
    router = workspace.tools("gemini")
    use = {"id": "1", "name": "read_file", "input": {"absolute_path": str(root / "a.bmp")}}
    assert router.call_anthropic(use)["content"] == "The file is image/bmp, 2 bytes; it cannot be shown as text"


@pytest.mark.parametrize(("dialect", "tool"), [("file", "file.read"), ("context", "read_file"), ("codex", "read_file")])
def test_media_in_text_dialect_is_named_not_printed(dialect: str, tool: str, workspace: Workspace, root: Path) -> None:
    data = image_file("JPEG", 64, 48)
    (root / "photo").write_bytes(data)
    (root / "odd.txt").write_bytes(b"\xff\xfe odd")
    error = workspace.call(dialect, tool, {"path": "photo"}).error
    assert error is not None
    assert error.code == "not_text"
    assert error.message == f"'photo' cannot be shown as text: it is image/jpeg, 64x48 pixels, {len(data)} bytes"
    assert workspace.call(dialect, tool, {"path": "odd.txt"}).success


def _read_pages(root: Path, pages: str) -> ToolResult:
    with Workspace(str(root)) as workspace:
        return workspace.call("claude-code", "Read", {"file_path": str(root / "a.pdf"), "pages": pages})


def test_pages_of_pdf_are_those_named_and_no_others(root: Path) -> None:
    writer, made = PdfWriter(), io.BytesIO()
    for width in range(100, 130):
        writer.add_blank_page(width, 50)
    writer.write(made)
    (root / "a.pdf").write_bytes(made.getvalue())
    for pages, widths in (("2-4", [101, 102, 103]), ("30", [129]), ("29-40", [128, 129]), ("1-20", [*range(100, 120)])):
        shown: Any = _read_pages(root, pages).output
        reader = PdfReader(io.BytesIO(b64decode(shown["inlineData"]["data"])))
        assert [int(page.mediabox.width) for page in reader.pages] == widths
    for pages, said in (("31", "has 30 pages"), ("1-21", "at most 20"), ("0", "must be"), ("4-2", "must be")):
        assert said in _read_pages(root, pages).text


def test_pages_without_pypdf_say_what_to_install(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.runtime.read_media.can_choose_pages", lambda: False)
    (root / "a.pdf").write_bytes(b"%PDF-1.7\n")
    assert "handrail[pdf]" in _read_pages(root, "1").text
