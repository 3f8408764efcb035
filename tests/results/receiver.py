"""A receiver of webhooks: a process of its own, so that it can be killed. It notes what it took before it answers.

    python receiver.py PORT FILE DIES_AFTER

dies without an answer at the request with that number: half of the times after it has noted it.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Handler.count += 1
        dies = Handler.count == int(sys.argv[3])
        if dies and Handler.count % 2:
            os._exit(9)
        line = json.dumps({"key": self.headers["Idempotency-Key"], "body": body})
        with open(sys.argv[2], "a", encoding="utf-8") as file:
            file.write(line + "\n")
        if dies:
            os._exit(9)
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
