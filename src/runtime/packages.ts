/** A wheel of the registry of Python packages, pinned by its digest. */
export interface Wheel {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
  /** Approximate sizes of the wheel and of what is in it, for progress and the check of free space. */
  readonly bytes: number;
  readonly unpackedBytes: number;
  /** Libraries that the engine opens before the provider, in this order; paths in the wheel. */
  readonly libraries: readonly string[];
}

export interface RuntimePackages {
  readonly name: 'cuda';
  /** Path of ONNX Runtime's library in its wheel. */
  readonly onnxruntime: string;
  /** In the order in which their libraries are opened. */
  readonly wheels: readonly Wheel[];
  /** What pip is asked for: these wheels are not installed into a Python. */
  readonly pythonVersion: string;
  readonly platforms: readonly string[];
  /** For a person. */
  readonly needs: string;
}

/**
 * ONNX Runtime's build for CUDA 13 and the libraries that its provider needs. cuDNN loads its other parts from the folder
 * of its wheel; NVRTC finds its builtins only where they are open already.
 */
export const cudaRuntime: RuntimePackages = {
  name: 'cuda',
  onnxruntime: 'onnxruntime/capi/libonnxruntime.so.1.30.0',
  pythonVersion: '3.12',
  platforms: [
    'manylinux_2_28_x86_64',
    'manylinux_2_27_x86_64',
    'manylinux_2_17_x86_64',
    'manylinux_2_12_x86_64',
  ],
  needs: 'a GPU of compute capability 7.5 or newer and the NVIDIA driver 580 or newer',
  wheels: [
    {
      name: 'nvidia-cuda-runtime',
      version: '13.0.96',
      sha256: '7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548',
      bytes: 2_200_000,
      unpackedBytes: 16_000_000,
      libraries: ['nvidia/cu13/lib/libcudart.so.13'],
    },
    {
      name: 'nvidia-cuda-nvrtc',
      version: '13.0.88',
      sha256: 'ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575',
      bytes: 90_000_000,
      unpackedBytes: 345_000_000,
      libraries: ['nvidia/cu13/lib/libnvrtc-builtins.so.13.0', 'nvidia/cu13/lib/libnvrtc.so.13'],
    },
    {
      name: 'nvidia-cublas',
      version: '13.1.0.3',
      sha256: 'ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171',
      bytes: 423_100_000,
      unpackedBytes: 598_000_000,
      libraries: ['nvidia/cu13/lib/libcublasLt.so.13', 'nvidia/cu13/lib/libcublas.so.13'],
    },
    {
      name: 'nvidia-curand',
      version: '10.4.0.35',
      sha256: '1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc',
      bytes: 60_000_000,
      unpackedBytes: 134_000_000,
      libraries: ['nvidia/cu13/lib/libcurand.so.10'],
    },
    {
      name: 'nvidia-cudnn-cu13',
      version: '9.20.0.48',
      sha256: '0c45dd8eeb50b603f07995b1b300c62ffe6a1980482b82b3bcf94a4ca9d49304',
      bytes: 366_200_000,
      unpackedBytes: 495_000_000,
      libraries: ['nvidia/cudnn/lib/libcudnn.so.9'],
    },
    {
      name: 'onnxruntime-gpu',
      version: '1.30.0',
      sha256: '6acc0f4b3d5ac5f2984432faa59dd8fcce6775f8b43a7140afa0f322c7a703b1',
      bytes: 246_685_715,
      unpackedBytes: 345_000_000,
      libraries: [],
    },
  ],
};
