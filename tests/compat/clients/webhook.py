"""A webhook: verifies events with the library of Standard Webhooks, reads them with that of CloudEvents, and prints each as a line of JSON.

The argument is the secret. The first line is the URL. The first attempt to send each event is answered 500.
The program ends with its input.
"""

import http.server
import json
import sys
import threading

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook

VERIFIER = Webhook(sys.argv[1])
seen = set()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = dict(self.headers.items())
        VERIFIER.verify(body, headers)
        event = from_http_event(HTTPMessage(headers, body))
        assert event.get_id() == self.headers["webhook-id"], headers
        taken = event.get_id() in seen
        seen.add(event.get_id())
        known = {
            "id": event.get_id(),
            "type": event.get_type(),
            "source": event.get_source(),
            "subject": event.get_subject(),
            "time": event.get_time().isoformat(),
            "level": event.get_extension("level"),
            "sequence": event.get_extension("sequence"),
            "data": event.get_data(),
            "taken": taken,
        }
        print(json.dumps(known), flush=True)
        self.send_response(204 if taken else 500)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_address[1]}/hook", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
