#!/usr/bin/env python3
"""Asks a server on PORT for /health until its input ends, and prints the seconds of each answer as a JSON list.

It is a process of its own, because threads of one Python process wait for each other, which would be measured as well.
"""

import json
import select
import sys
import time

from http_bytes import RawConnection


def main():
    port, times = int(sys.argv[1]), []
    while not times or not select.select([sys.stdin], [], [], 0.05)[0]:
        with RawConnection(port) as connection:
            begin = time.monotonic()
            connection.send(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            status = connection.response()[0]
            times.append(time.monotonic() - begin)
            if status != 200:
                return f"/health wanted status 200, but got {status}"
    print(json.dumps(times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
