"""Runs rembg in this process: worker.py MODEL."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rembg import new_session, remove
from worker_loop import serve

session = new_session(sys.argv[1])
serve(lambda data: remove(data, session=session))
