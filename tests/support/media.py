"""Makes images, and a dialect with one tool that shows them."""

import io
import struct
import zlib

from PIL import Image

from handrail import Workspace
from handrail.model.effects import Effect
from handrail.runtime.call import Call
from handrail.tools.media_output import inline
from handrail.tools.router import ToolRouter
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect, Output

dialect = Dialect("media")


class Show(Params):
    path: str = field("The file to show.", path=True)


@dialect.tool("show", Effect.READ)
def show(p: Show, c: Call) -> Output:
    """Show an image or a PDF."""
    media = c.files.media(p.path)
    if media is None:
        return c.files.read(p.path).data.decode(errors="replace")
    c.metadata.update(original=[media.original_width, media.original_height], shown=[media.width, media.height])
    return inline(media)


def media_dialect(workspace: Workspace) -> ToolRouter:
    """Return the tools of the dialect in a workspace."""
    client = workspace.session()
    return ToolRouter(dialect, client._session, client.log)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, rows: bytes) -> bytes:
    """Return a PNG with this header and these compressed rows, right or wrong."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def image_file(form: str, width: int, height: int, *, frames: int = 1, noise: bool = False) -> bytes:
    """Return an image file that Pillow made."""
    made = io.BytesIO()
    image = Image.effect_noise((width, height), 90) if noise else Image.linear_gradient("L").resize((width, height))
    more = [image.point(lambda value, by=by: (value + by) % 256) for by in range(1, frames)]
    options = {"save_all": True, "append_images": more} if more else {}
    image.convert("RGB" if form in ("JPEG", "WEBP") else image.mode).save(made, form, **options)
    return made.getvalue()
