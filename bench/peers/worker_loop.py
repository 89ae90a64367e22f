"""The loop of a worker (python.js)."""

import json
import sys
import time


def serve(cut):
    """`cut(data)` is given the bytes of a JPEG and returns those of the PNG with its matte."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        with open(request["file"], "rb") as file:
            data = file.read()
        started = time.perf_counter()
        png = cut(data)
        ms = (time.perf_counter() - started) * 1000
        with open(request["out"], "wb") as file:
            file.write(png)
        print(json.dumps({"ms": ms}), flush=True)
