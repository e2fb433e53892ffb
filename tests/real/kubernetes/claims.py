#!/usr/bin/env python3
"""claims.py ADDRESS PORT CERTIFICATE KEY FOLDER

Hands out Ignition configs over HTTPS, each once: GET /NAME with `Authorization: Bearer TOKEN` answers FOLDER/NAME.TOKEN, and removes it.
It stands for the listener of clusterd that machines ask."""

import http.server
import os
import re
import ssl
import sys


class Claims(http.server.BaseHTTPRequestHandler):
    folder = ""

    def do_GET(self):
        name = self.path.strip("/")
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not re.fullmatch(r"[a-z0-9-]+", name) or not re.fullmatch(r"[a-z0-9]+", token):
            self.send_error(400)
            return
        claimed = os.path.join(self.folder, f"{name}.{token}")
        given = f"{claimed}.given"
        try:
            os.rename(claimed, given)
        except FileNotFoundError:
            self.send_error(403)
            return
        with open(given, "rb") as file:
            body = file.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.coreos.ignition+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    address, port, certificate, key, Claims.folder = sys.argv[1:]
    server = http.server.ThreadingHTTPServer((address, int(port)), Claims)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
