# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plugin for vLLM: checkpoints whose config.json says `"quant_method": "nm_sparse"`.

vLLM calls `register` through the entry point group `vllm.general_plugins`, in each of
its processes, also in those without a GPU.
"""


def register() -> None:
    """Makes the quantization method `nm_sparse` known to vLLM; once, however often it
    is called."""
    # vLLM calls this before it has chosen a device, so nothing is imported sooner.
    from vllm.model_executor.layers.quantization import (
        QUANTIZATION_METHODS,
        register_quantization_config,
    )

    from .config import METHOD, NMSparseConfig

    if METHOD not in QUANTIZATION_METHODS:
        register_quantization_config(METHOD)(NMSparseConfig)
