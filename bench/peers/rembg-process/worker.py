"""Runs rembg in this process: worker.py MODEL. Reads lines of JSON {"file", "out"}, writes the PNG of the file to out,
and answers each with {"ms"}: from the bytes of the file to those of the PNG. The first line it prints is {"ready"}."""

import json
import sys
import time

from rembg import new_session, remove

session = new_session(sys.argv[1])
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    with open(request["file"], "rb") as file:
        data = file.read()
    started = time.perf_counter()
    png = remove(data, session=session)
    ms = (time.perf_counter() - started) * 1000
    with open(request["out"], "wb") as file:
        file.write(png)
    print(json.dumps({"ms": ms}), flush=True)
