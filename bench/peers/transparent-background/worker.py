"""Runs transparent-background on the processor: worker.py WEIGHTS. 'random': weights that mean nothing, for times only."""

import io
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from PIL import Image
from transparent_background import Remover
from transparent_background.InSPyReNet import InSPyReNet_SwinB
from worker_loop import serve

if sys.argv[1] == "random":
    with tempfile.NamedTemporaryFile(suffix=".pth") as file:
        network = InSPyReNet_SwinB(depth=64, pretrained=False, threshold=None, base_size=[1024, 1024])
        torch.save(network.state_dict(), file.name)
        remover = Remover(device="cpu", ckpt=file.name)
else:
    remover = Remover(device="cpu")


def cut(data):
    png = io.BytesIO()
    remover.process(Image.open(io.BytesIO(data)).convert("RGB"), type="rgba").save(png, "PNG")
    return png.getvalue()


serve(cut)
