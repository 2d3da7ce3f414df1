"""Requests as bytes, and a strict reader of responses: what a client library would hide is checked here."""

import json
import select
import socket
import struct

HEAD = "Host: a\r\nContent-Type: application/json\r\n"


class Gone(Exception):
    """The server closed the connection before a response was complete."""


class BadResponse(AssertionError):
    """What came is no valid response."""


def request_bytes(path, body, fields="", method="POST"):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"{method} {path} HTTP/1.1\r\n{HEAD}{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body


class RawConnection:
    def __init__(self, port, timeout=120, receive_buffer=0):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.held = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Sends as much as the server takes: it may have refused the request already."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def end_sending(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def reset(self):
        """Closes the connection so that the server gets a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def wait_for_bytes(self, seconds):
        return bool(select.select([self.socket], [], [], seconds)[0])

    def more(self, size=1 << 16):
        try:
            data = self.socket.recv(size)
        except ConnectionResetError as problem:
            raise Gone from problem
        if not data:
            raise Gone
        self.held += data

    def until(self, end):
        while end not in self.held:
            self.more()
        found, self.held = self.held.split(end, 1)
        return found

    def exactly(self, count):
        parts, missing = [self.held[:count]], count - len(self.held)
        self.held = self.held[count:]
        while missing > 0:
            self.more(min(missing, 1 << 20))
            parts.append(self.held)
            missing -= len(self.held)
            self.held = b""
        return b"".join(parts)

    def head(self):
        """(status, {name: value}) of the next response that is not 100 Continue."""
        while True:
            lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            version, status, _ = (lines[0] + "  ").split(" ", 2)
            if version != "HTTP/1.1" or not status.isdigit():
                raise BadResponse(f"a response begins with {lines[0]!r}")
            if status != "100":
                return int(status), dict(line.lower().split(": ", 1) for line in lines[1:])

    def parts(self, fields):
        """The body, as it comes: the chunks, or one piece."""
        if fields.get("transfer-encoding") == "chunked":
            while size := int(self.until(b"\r\n"), 16):
                yield self.exactly(size)
                if self.exactly(2) != b"\r\n":
                    raise BadResponse("a chunk does not end with an end of line")
            self.exactly(2)
        elif "content-length" in fields:
            yield self.exactly(int(fields["content-length"]))
        else:
            raise BadResponse(f"a response has neither a length nor chunks: {fields}")

    def response(self, is_head=False):
        """(status, fields, body)"""
        status, fields = self.head()
        return status, fields, b"" if is_head else b"".join(self.parts(fields))


def events_of(body):
    """The JSON values of a stream of events. It must end with [DONE], or llama.cpp's with a last event that says so."""
    *texts, last = [event for event in body.decode().split("\n\n") if not event.startswith(":")]
    if last or any(not text.startswith("data: ") or "\n" in text for text in texts):
        raise BadResponse(f"a stream has an event that is no line of data: {body[-500:]!r}")
    is_done = texts[-1] == "data: [DONE]"
    events = [json.loads(text[6:]) for text in texts[:-1 if is_done else None]]
    if not is_done and not events[-1].get("stop") and "error" not in events[-1]:
        raise BadResponse(f"a stream ends with {body[-500:]!r}")
    return events


def check_error(status, body):
    """An error has the body that docs/serving.md describes."""
    error = json.loads(body)["error"]
    if set(error) != {"message", "type", "param", "code"} or error["code"] != status or not error["message"]:
        raise BadResponse(f"the body of status {status} is {body[:500]!r}")
    if len(error["message"]) > 4096:
        raise BadResponse(f"a message has {len(error['message'])} characters")
