"""Runs CarveKit's interface of high quality on the processor: worker.py WEIGHTS. 'random': weights that mean nothing, for
times only."""

import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from carvekit.api.high import HiInterface
from carvekit.api.interface import Interface
from carvekit.ml.wrap.fba_matting import FBAMatting
from carvekit.ml.wrap.tracer_b7 import TracerUniversalB7
from carvekit.pipelines.postprocessing import MattingMethod
from carvekit.trimap.generator import TrimapGenerator
from PIL import Image
from worker_loop import serve

if sys.argv[1] == "random":
    # What HiInterface puts together, with the same sizes, but without files of weights.
    matting = FBAMatting(device="cpu", input_tensor_size=2048, batch_size=1, load_pretrained=False)
    interface = Interface(
        pre_pipe=None,
        seg_pipe=TracerUniversalB7(
            device="cpu", input_image_size=640, batch_size=2, load_pretrained=False, model_path="none"
        ).eval(),
        post_pipe=MattingMethod(
            matting_module=matting.eval(),
            trimap_generator=TrimapGenerator(prob_threshold=231, kernel_size=30, erosion_iters=5),
            device="cpu",
        ),
        device="cpu",
    )
else:
    interface = HiInterface(device="cpu")


def cut(data):
    png = io.BytesIO()
    interface([Image.open(io.BytesIO(data)).convert("RGB")])[0].save(png, "PNG")
    return png.getvalue()


serve(cut)
