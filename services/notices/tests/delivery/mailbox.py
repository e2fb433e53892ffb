"""A mail server that prints what it takes: aiosmtpd, told by a JSON document on the command line what to do."""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

told = json.loads(sys.argv[1])


class Mailbox:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address == told.get("refuses"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        print(json.dumps({
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "content": envelope.content.decode("utf-8"),
            "tls": session.ssl is not None,
            "user": session.auth_data.login.decode() if session.auth_data else None,
        }), flush=True)
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    good = isinstance(data, LoginPassword) and data.password.decode() == told["password"]
    return AuthResult(success=good, handled=good, auth_data=data)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(told["certificate"], told["key"])


def smtp():
    return SMTP(Mailbox(), tls_context=context, require_starttls=True, authenticator=authenticate, auth_required=True)


async def serve():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(smtp, "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    # Until nobody wants it any more.
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(serve())
