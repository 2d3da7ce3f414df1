"""Requests that are wrong: by hand with the status that each must get, and by random changes of valid ones."""

import copy
import json

from http_bytes import HEAD, BadResponse, Gone, RawConnection, check_error, events_of, request_bytes
from valid_requests import OF_BOTH, OF_CHATS, SAMPLING, request_of

COMPLETIONS = "/v1/completions"
# No request may get another: 500 is the server's own fault, and 503 has a reason that no request of this part gives.
ALLOWED = {200, 400, 401, 404, 405, 408, 413, 417, 431, 501, 505}


def post(fields, body=b'{"prompt":"a","max_tokens":1}', head=HEAD, path=COMPLETIONS, version="1.1"):
    return f"POST {path} HTTP/{version}\r\n{head}{fields}\r\n".encode("latin-1") + body


def get(line="GET /health HTTP/1.1", fields="Host: a\r\n"):
    return f"{line}\r\n{fields}\r\n".encode("latin-1")


CHUNKED = "Transfer-Encoding: chunked\r\n"
LENGTH = "Content-Length: 29\r\n"
# {name: (bytes, status)}
HEADS = {
    "no version": (get("GET /health"), 400),
    "version 2": (get("GET /health HTTP/2.0"), 505),
    "version in words": (get("GET /health HTTP/one"), 400),
    "two spaces": (get("GET  /health HTTP/1.1"), 400),
    "control character in the target": (get("GET /hea\x01lth HTTP/1.1"), 400),
    "bare line feed": (b"GET /health HTTP/1.1\nHost: a\n\n", 400),
    "bare carriage return": (get(fields="Host: a\r\nX: b\rc\r\n"), 400),
    "zero byte": (get(fields="Host: a\r\nX: b\0c\r\n"), 400),
    "folded line": (get(fields="Host: a\r\nX: b\r\n c\r\n"), 400),
    "space before the colon": (get(fields="Host : a\r\n"), 400),
    "no colon": (get(fields="Host: a\r\nnothing\r\n"), 400),
    "empty name": (get(fields="Host: a\r\n: b\r\n"), 400),
    "two hosts": (get(fields="Host: a\r\nHost: b\r\n"), 400),
    "no host": (get(fields=""), 400),
    "unknown method": (get("BREW /health HTTP/1.1"), 405),
    "method of another path": (get("POST /health HTTP/1.1", "Host: a\r\nContent-Length: 0\r\n"), 405),
    "no such path": (get("GET /nothing HTTP/1.1"), 404),
    "path above the root": (get("GET /../../etc/passwd HTTP/1.1"), 404),
    "wrong escape": (get("GET /%zz HTTP/1.1"), 404),
    "many fields": (get(fields="Host: a\r\n" + "X: y\r\n" * 300), 431),
    "huge field": (get(fields="Host: a\r\nX: " + "y" * (5 << 20) + "\r\n"), 431),
    "huge target": (get("GET /" + "a" * (5 << 20) + " HTTP/1.1"), 431),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(64)) + b"\r\n\r\n", 400),
}
FRAMINGS = {
    "two equal lengths": (post(LENGTH + LENGTH), 200),
    "two lengths": (post(LENGTH + "Content-Length: 28\r\n"), 400),
    "length and chunks": (post(LENGTH + CHUNKED, b"0\r\n\r\n"), 400),
    "length with a sign": (post("Content-Length: +29\r\n"), 400),
    "negative length": (post("Content-Length: -1\r\n"), 400),
    "length of 30 digits": (post("Content-Length: " + "9" * 30 + "\r\n"), (400, 413)),
    "hexadecimal length": (post("Content-Length: 0x1d\r\n"), 400),
    "body beyond the limit": (post(f"Content-Length: {1 << 40}\r\n"), 413),
    "unknown encoding": (post("Transfer-Encoding: gzip\r\n"), 501),
    "chunks within chunks": (post("Transfer-Encoding: chunked, chunked\r\n", b"0\r\n\r\n"), (400, 501)),
    "chunk size in words": (post(CHUNKED, b"zz\r\n"), 400),
    "chunk of 2^40": (post(CHUNKED, b"10000000000\r\n"), 400),
    "chunk size of 40 digits": (post(CHUNKED, b"1" * 40 + b"\r\n"), 400),
    "chunk without end": (post(CHUNKED, b"2\r\n{}xx0\r\n\r\n"), 400),
    "endless chunk extension": (post(CHUNKED, b"2;" + b"x" * 20000), 400),
    "endless trailers": (post(CHUNKED, b"0\r\n" + b"A: b\r\n" * 5000), 400),
    "unknown expectation": (post("Expect: miracles\r\n" + LENGTH), 417),
    "no content type": (post(LENGTH, head="Host: a\r\n"), 400),
    "other content type": (post(LENGTH, head="Host: a\r\nContent-Type: text/plain\r\n"), 400),
}
DEEP = 100000
TEXTS = {
    "empty": b"", "white space": b"  \n", "no JSON": b"hello", "cut": b'{"prompt": "a', "two values": b"{}{}",
    "list": b"[]", "number": b"5", "text": b'"a"', "byte order mark": b"\xef\xbb\xbf{}", "UTF-16": '{"prompt":"a"}'.encode("utf-16"),
    "bad UTF-8": b'{"prompt":"\xff\xfe"}', "overlong UTF-8": b'{"prompt":"\xc0\xaf"}', "cut UTF-8": b'{"prompt":"\xe6\xb0"}',
    "surrogate in UTF-8": b'{"prompt":"\xed\xa0\x80"}', "control character": b'{"prompt":"a\nb"}', "zero": b'{"prompt":"\x00"}',
    "wrong escape": b'{"prompt":"\\x41"}', "comma at the end": b'{"prompt":"a",}', "comment": b'{"prompt":"a"} // b',
    "single quotes": b"{'prompt':'a'}", "NaN": b'{"prompt":"a","temperature":NaN}',
    "Infinity": b'{"prompt":"a","temperature":Infinity}', "1e999": b'{"prompt":"a","temperature":1e999}',
    "zero in front": b'{"prompt":"a","max_tokens":01}', "plus sign": b'{"prompt":"a","max_tokens":+1}',
    "30 digits": b'{"prompt":"a","max_tokens":' + b"9" * 30 + b"}", "30 digits of a seed": b'{"prompt":"a","seed":' + b"9" * 30 + b"}",
    "deep lists": b'{"prompt":' + b"[" * DEEP + b"]" * DEEP + b"}", "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep and cut": b"[" * DEEP, "no prompt": b'{"max_tokens":1}', "unknown model": b'{"prompt":"a","model":"nobody"}',
    "empty prompt": b'{"prompt":""}', "no prompts": b'{"prompt":[]}',
    "token of 20 digits": b'{"prompt":[' + b"9" * 20 + b"]}", "negative token": b'{"prompt":[-1]}', "token in part": b'{"prompt":[1.5]}',
    "token beyond": b'{"prompt":[2000000000]}', "long prompt": json.dumps({"prompt": [5] * 300000}).encode(),
}
WRONG_VALUES = [None, True, False, -1, 0, 1, 2**31, 2**63, 2**64, -2**63, 1e308, 0.5, "", "x", "\0", "\ud800", "9" * 30, [], {},
                [None], [[[]]], {"a": {"b": []}}, ["x"] * 2000, "y" * 100000, [1e30], {"-1": 1}, {"9": "x"}, [-1], [2**40]]
FORMS = {
    "json_schema": [{"type": "nothing"}, {"$ref": "#/a/b"}, {"$ref": "#"}, {"pattern": "("}, {"minLength": 10**9}, {"enum": []}, 5,
                    {"type": "string", "pattern": "(a{999}){999}"}, {"allOf": [{"$ref": "#"}]}, {"type": "integer", "minimum": 10**30},
                    {"type": "array", "items": {"$ref": "#"}}, {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}],
    "regex": ["(", "a{1000000}", "((a{99}){99}){99}", "[z-a]", "\\", "(?<=a)b", "\\p{Nothing}", "a" * 50000, ""],
    "grammar": ["", "root ::=", "root ::= root", "root ::= nobody", "x ::= \"a\"", "root ::= (" * 5000, "\0", 'root ::= "a"{1000000}'],
    "choice": [[], [""], ["a"] * 100000, [5], "a", [None]],
}


def cases_of_forms():
    for name, values in FORMS.items():
        for value in values:
            key = {"json_schema": "json"}.get(name, name)
            yield COMPLETIONS, {"prompt": "a", "max_tokens": 2, "structured_outputs": {key: value}}
            if name in ("json_schema", "grammar"):
                yield "/completion", {"prompt": "a", "n_predict": 2, name: value}


def cases_of_fields():
    """A valid request, in which one field has a value of each kind."""
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    for base, path, fields in (({"prompt": "a", "max_tokens": 2}, COMPLETIONS, {**SAMPLING, **OF_BOTH, "logprobs": 1}),
                               (chat, "/v1/chat/completions", {**SAMPLING, **OF_BOTH, **OF_CHATS}),
                               ({"prompt": "a", "n_predict": 2}, "/completion", SAMPLING)):
        names = [*base, *fields, "stream", "stream_options", "tools", "tool_choice", "response_format", "structured_outputs", "model"]
        for name in dict.fromkeys(names):
            for value in WRONG_VALUES:
                if name in ("max_tokens", "n_predict") and isinstance(value, (int, float)) and value not in (True, False):
                    continue  # a large number is an upper bound, and the answer would be long
                yield path, {**base, name: value}


def inner_places(value, at=()):
    """The paths of all values within a JSON value."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from inner_places(inner, (*at, key))


def changed_value(chance, body):
    """The body with a value somewhere in it removed, doubled or replaced."""
    body = copy.deepcopy(body)
    place = chance.choice([at for at in inner_places(body) if at])
    inner = body
    for key in place[:-1]:
        inner = inner[key]
    way = chance.randrange(3)
    if way == 0:
        del inner[place[-1]]
    elif way == 1 and isinstance(inner, list):
        inner.append(inner[place[-1]])
    else:
        inner[place[-1]] = chance.choice(WRONG_VALUES)
    for name in ("max_tokens", "n_predict"):
        if isinstance(body.get(name), int) and body[name] > 64:
            body[name] = 64
    if isinstance(body.get("n"), int) and body["n"] > 16:
        body["n"] = 16
    return body


def changed_bytes(chance, data):
    """The bytes with some cut, replaced, inserted or repeated."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        at = chance.randrange(len(data) + 1)
        way = chance.randrange(5)
        if way == 0:
            del data[at:at + chance.choice([1, 2, 50])]
        elif way == 1 and at < len(data):
            data[at] = chance.randrange(256)
        elif way == 2:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.choice([1, 3])))
        elif way == 3:
            data[at:at] = chance.choice([b"\r\n", b"\n", b"\r\n\r\n", b"\0", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n", b"\xff", b": ", b"\""])
        else:
            data[at:at] = data[at:at + chance.choice([1, 40])]
        if not data:
            return b"\r\n"
    return bytes(data)


def read_answer(connection, sent):
    """The status of an answer, whose form is checked; None if the connection ended instead."""
    try:
        status, fields, body = connection.response(sent.startswith(b"HEAD"))
        if status not in ALLOWED:
            raise BadResponse(f"status {status}: {body[:500]!r}")
        if status != 200 and not sent.startswith(b"HEAD"):
            check_error(status, body)
        if fields["content-type"].startswith("text/event-stream"):
            events_of(body)
        return status
    except Gone:
        return None


def send(port, data, wanted=()):
    """Sends bytes and checks the answers; the first must have a status of `wanted`, if there are any."""
    statuses = []
    with RawConnection(port) as connection:
        connection.send(data)
        if not wanted:
            # A request that is cut waits for its rest. One that is whole is cancelled by an end, so it has time before.
            connection.wait_for_bytes(2)
            connection.end_sending()
        try:
            while (status := read_answer(connection, data)) is not None:
                statuses.append(status)
                if wanted:
                    break
        except BadResponse as problem:
            raise BadResponse(f"{problem}, after {data[:2000]!r}") from problem
    if wanted and (not statuses or statuses[0] not in wanted):
        raise BadResponse(f"wanted status {wanted}, but got {statuses or 'the end of the connection'}, after {data[:500]!r}")
    return statuses


def known_cases():
    """(bytes, statuses of which it must get one; none where any answer will do)"""
    for data, status in (*HEADS.values(), *FRAMINGS.values()):
        yield data, status if isinstance(status, tuple) else (status,)
    for text in TEXTS.values():
        wanted = (404,) if b"nobody" in text else (400,)
        yield request_bytes(COMPLETIONS, text), wanted
    for path, body in (*cases_of_forms(), *cases_of_fields()):
        # Python writes a lone surrogate as an escape, which is what is meant.
        yield request_bytes(path, body), tuple(ALLOWED)


def random_case(chance):
    path, body = request_of(chance.randrange(1 << 30))
    way = chance.randrange(4)
    if way == 0:
        return request_bytes(path, changed_value(chance, body))
    data = request_bytes(path, changed_bytes(chance, json.dumps(body).encode()) if way == 1 else body)
    if way == 2:
        data = changed_bytes(chance, data)
    if way == 3:  # several in a row, of which one is wrong
        data = data + changed_bytes(chance, data) + data
    return data
