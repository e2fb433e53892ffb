"""A collector of traces: takes OTLP over HTTP with the classes of OpenTelemetry, and prints each request as a line of JSON.

The first line is the URL. The program ends with its input.
"""

import http.server
import json
import sys
import threading

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        assert self.path == "/v1/traces", self.path
        assert self.headers["content-type"] == "application/x-protobuf", self.headers
        request = trace_service_pb2.ExportTraceServiceRequest()
        body = self.rfile.read(int(self.headers["content-length"]))
        request.ParseFromString(body)
        # The published definition knows every field that the daemon writes.
        assert request.SerializeToString(deterministic=True) == body
        print(json.dumps(MessageToDict(request)), flush=True)
        answer = trace_service_pb2.ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(f"http://127.0.0.1:{server.server_address[1]}/v1/traces", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
