#!/usr/bin/env python3
"""claims.py ADDRESS PORT CERTIFICATE KEY FOLDER

Serves Ignition configs over HTTPS, each once: GET /NAME with `Authorization: Bearer TOKEN` answers FOLDER/NAME.TOKEN and removes it.
GET /authorities/NAME?holds=N with the token "channel" writes N to FOLDER/NAME.authorities/held. It answers N.tar of that folder if it
exists, else 202 if FOLDER/rotating exists, else 204. POST /reports is accepted and ignored. POST /certificates/NAME with the same token
writes the body to FOLDER/NAME.authorities/certificates. It answers 200 once if FOLDER/NAME.authorities/permitted exists, and removes that
file; else 202 with the number of seconds after which NAME has to report again.

GET /backups/NAME?restores=N with the same token answers FOLDER/NAME.work if it exists, else 202 if FOLDER/backing-up exists, else 204.
PUT /backups/NAME/ID takes a snapshot to FOLDER/ID.db, and GET hands it out. POST /backups/NAME/ID/result is written to FOLDER/ID.result.
Both end the work of the machine.

The server stands in for the listener of clusterd that machines ask."""

import hashlib
import http.server
import os
import re
import shutil
import ssl
import sys
import urllib.parse

TRANSFER = r"/backups/([a-z0-9-]+)/([a-z0-9-]+)"


class Claims(http.server.BaseHTTPRequestHandler):
    folder = ""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        reports = re.fullmatch(r"/certificates/([a-z0-9-]+)", self.path)
        ended = re.fullmatch(TRANSFER + "/result", self.path)
        if reports:
            self.certificates(reports[1], body)
            return
        if ended:
            if not self.has_token():
                self.answer(404)
                return
            self.write(f"{ended[2]}.result", body)
            self.end_work(ended[1])
        self.answer(204)

    def certificates(self, name, body):
        folder = os.path.join(self.folder, f"{name}.authorities")
        if not self.has_token() or not os.path.isdir(folder):
            self.answer(404)
            return
        self.write(f"{name}.authorities/certificates", body)
        try:
            os.remove(os.path.join(folder, "permitted"))
        except FileNotFoundError:
            self.answer(202, "text/plain", b"3\n")
        else:
            self.answer(200)

    def do_PUT(self):
        path, _, query = self.path.partition("?")
        sent = re.fullmatch(TRANSFER, path)
        if not sent or not self.has_token():
            self.answer(404)
            return
        digest, left = hashlib.sha256(), int(self.headers["Content-Length"])
        place = os.path.join(self.folder, f"{sent[2]}.db")
        with open(f"{place}.new", "wb") as file:
            while left:
                part = self.rfile.read(min(left, 1 << 20))
                if not part:
                    return  # the machine is gone
                digest.update(part)
                file.write(part)
                left -= len(part)
        if digest.hexdigest() != urllib.parse.parse_qs(query)["sha256"][0]:
            self.answer(400)
            return
        os.rename(f"{place}.new", place)
        self.end_work(sent[1])
        self.answer(204)

    def has_token(self):
        return self.headers.get("Authorization") == "Bearer channel"

    def write(self, name, body):
        place = os.path.join(self.folder, name)
        with open(f"{place}.new", "wb") as file:
            file.write(body)
        os.rename(f"{place}.new", place)

    def end_work(self, machine):
        try:
            os.remove(os.path.join(self.folder, f"{machine}.work"))
        except FileNotFoundError:
            pass

    def backups(self, machine):
        work = os.path.join(self.folder, f"{machine}.work")
        if not self.has_token():
            self.answer(404)
        elif os.path.exists(work):
            with open(work, "rb") as file:
                self.answer(200, "text/plain", file.read())
        else:
            self.answer(202 if os.path.exists(os.path.join(self.folder, "backing-up")) else 204)

    def snapshot(self, backup):
        place = os.path.join(self.folder, f"{backup}.db")
        if not self.has_token() or not os.path.exists(place):
            self.answer(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(os.path.getsize(place)))
        self.end_headers()
        with open(place, "rb") as file:
            shutil.copyfileobj(file, self.wfile)

    def answer(self, status, kind="", body=b""):
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def authorities(self, name, holds):
        folder = os.path.join(self.folder, f"{name}.authorities")
        if not self.has_token() or not os.path.isdir(folder):
            self.answer(404)
            return
        with open(os.path.join(folder, "held.new"), "w") as file:
            file.write(holds)
        os.rename(os.path.join(folder, "held.new"), os.path.join(folder, "held"))
        archive = os.path.join(folder, f"{holds}.tar")
        if os.path.exists(archive):
            with open(archive, "rb") as file:
                self.answer(200, "application/x-tar", file.read())
        else:
            self.answer(202 if os.path.exists(os.path.join(self.folder, "rotating")) else 204)

    def do_GET(self):
        asks = re.fullmatch(r"/authorities/([a-z0-9-]+)\?holds=([0-9]+)", self.path)
        if asks:
            self.authorities(*asks.groups())
            return
        asks = re.fullmatch(r"/backups/([a-z0-9-]+)\?restores=[0-9]+", self.path)
        if asks:
            self.backups(asks[1])
            return
        fetches = re.fullmatch(TRANSFER, self.path)
        if fetches:
            self.snapshot(fetches[2])
            return
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
        self.answer(200, "application/vnd.coreos.ignition+json", body)


def main():
    address, port, certificate, key, Claims.folder = sys.argv[1:]
    server = http.server.ThreadingHTTPServer((address, int(port)), Claims)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
