"""The files of the pages, as `npm run build` in the folder console/ makes them; they are part of the package."""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

# All that the pages need comes from the service itself, and nothing of it is written into a page.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
INDEX = "index.html"
ALWAYS_ASKED = "no-cache"  # whether it is still the same, by its ETag
FOR_EVER = "public, max-age=31536000, immutable"  # files with a hash of their content in their name
HASHED = "assets/"


@dataclass(frozen=True)
class _File:
    content: bytes
    type: str
    caching: str
    tag: str


class Files:
    """All are read once; together they have less than a megabyte."""

    def __init__(self, root: Traversable | None = None) -> None:
        self._files = dict(_read(root or resources.files("towpath.console") / "static", ""))

    @property
    def paths(self) -> list[str]:
        return [f"/{name}" for name in self._files if name != INDEX]

    async def page(self, request: Request) -> Response:
        return self._answer(request, INDEX)

    async def file(self, request: Request) -> Response:
        return self._answer(request, request.url.path.removeprefix("/"))

    def _answer(self, request: Request, name: str) -> Response:
        file = self._files[name]
        headers = {**HEADERS, "Cache-Control": file.caching, "ETag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.type)


def _read(folder: Traversable, prefix: str) -> list[tuple[str, _File]]:
    found: list[tuple[str, _File]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _read(entry, f"{name}/")
        else:
            content = entry.read_bytes()
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            found.append((name, _File(content, kind, FOR_EVER if name.startswith(HASHED) else ALWAYS_ASKED, tag)))
    return found
