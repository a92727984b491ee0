"""A pretended Hugging Face Hub: an OpenID provider here, which lets everyone in at once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "refinerank-space", "a secret of the Space"


class Hub(ThreadingHTTPServer):
    """Serves the provider's pages. name: who comes next; nonces: what a login was begun with."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        self.key = RSAKey.generate_key(2048, {"kid": "one", "alg": "RS256", "use": "sig"})
        self.name = "dr-hub"
        self.nonces: dict[str, str] = {}

    @property
    def address(self) -> str:
        """Where it is served."""
        return f"http://127.0.0.1:{self.server_port}"

    def id_token(self, code: str) -> str:
        """Who logged in, signed."""
        now = int(time.time())
        claims = {
            "iss": self.address,
            "aud": CLIENT_ID,
            "sub": "1",
            "iat": now,
            "exp": now + 600,
            "nonce": self.nonces[code],
            "name": "A Doctor of the Hub",
            "preferred_username": self.name,
            "profile": f"{self.address}/{self.name}",
            "picture": f"{self.address}/{self.name}.png",
        }
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)


class _Pages(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        """The provider's description, its keys, and the login, which asks nothing."""
        asked = urlsplit(self.path)
        at = self.server.address
        if asked.path == "/.well-known/openid-configuration":
            self._json(
                {
                    "issuer": at,
                    "authorization_endpoint": f"{at}/authorize",
                    "token_endpoint": f"{at}/token",
                    "jwks_uri": f"{at}/keys",
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
            )
        elif asked.path == "/keys":
            self._json({"keys": [self.server.key.as_dict(private=False)]})
        elif asked.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(asked.query).items()}
            code = f"code-{len(self.server.nonces)}"
            self.server.nonces[code] = query["nonce"]
            back = urlencode({"code": code, "state": query["state"]})
            self.send_response(302)
            self.send_header("Location", f"{query['redirect_uri']}&{back}")
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """A code for a token."""
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._json(
            {
                "access_token": "access",
                "token_type": "bearer",
                "expires_in": 600,
                "scope": "openid profile",
                "id_token": self.server.id_token(body["code"][0]),
            }
        )

    def _json(self, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def hub() -> Iterator[Hub]:
    """The provider, while the block runs."""
    server = Hub()
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
