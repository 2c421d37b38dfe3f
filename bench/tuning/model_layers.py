# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The linear layers of published models, whole and divided among GPUs: what the
databases that come with the compiler are measured for."""

import dataclasses

# GPUs that a model's layers are divided among.
DIVISIONS = (1, 2, 4, 8)


@dataclasses.dataclass(frozen=True)
class Model:
    """Sizes as the model's config.json has them.

    hidden:  of activations between blocks.
    inner:   of the MLP; 0: it is none of dense layers.
    query:   heads times their size; value: heads of keys and values times their size.
    gated:   whether the MLP has a gate beside `up`.
    others:  further layers, (inputs, outputs), and whether outputs are divided.
    """

    hidden: int
    inner: int
    query: int
    value: int
    gated: bool = True
    others: tuple = ()

    def layers(self, division=1):
        """(inputs, outputs) of each different layer on one of `division` GPUs. Layers
        whose outputs go on being divided are divided by outputs, those behind them by
        inputs, as tensor parallelism has it; projections that read the same x count
        alone and as one layer, as vLLM has them."""
        value = max(self.value // division, self.value and 64)
        query, inner = self.query // division, self.inner // division
        found = []
        if self.query:
            found += [(self.hidden, query), (self.hidden, value)]
            found += [(self.hidden, query + 2 * value), (query, self.hidden)]
        if self.inner:
            found += [(self.hidden, inner), (inner, self.hidden)]
            if self.gated:
                found.append((self.hidden, 2 * inner))
        for inputs, outputs, part in self.others:
            inputs //= division if part == "inputs" else 1
            outputs //= division if part == "outputs" else 1
            found.append((inputs, outputs))
        return list(dict.fromkeys(found))


MODELS = {
    "Llama-3.1-8B": Model(4096, 14336, 4096, 1024),  # Mistral-7B has the same
    "Llama-3.2-1B": Model(2048, 8192, 2048, 512),
    "Llama-3.2-3B": Model(3072, 8192, 3072, 1024),
    "Llama-3.1-70B": Model(8192, 28672, 8192, 1024),
    "Qwen2-7B": Model(3584, 18944, 3584, 512),
    "Qwen3-0.6B": Model(1024, 3072, 2048, 1024),
    "Qwen3-4B": Model(2560, 9728, 4096, 1024),
    "Qwen3-8B": Model(4096, 12288, 4096, 1024),
    "Qwen3-14B": Model(5120, 17408, 5120, 1024),
    "Qwen3-32B": Model(5120, 25600, 8192, 1024),
    "Mistral-Small-24B": Model(5120, 32768, 4096, 1024),
    "Gemma-3-4B": Model(2560, 10240, 2048, 1024),
    "Gemma-3-12B": Model(3840, 15360, 4096, 2048),
    "Gemma-3-27B": Model(5376, 21504, 4096, 2048),
    "Phi-4": Model(5120, 17920, 5120, 1280),
    # Experts are no layers of this kind.
    "gpt-oss-20B attention": Model(2880, 0, 4096, 512),
    "DeepSeek-V3 attention": Model(
        7168, 0, 0, 0,
        others=(
            (7168, 1536, ""), (1536, 24576, "outputs"), (7168, 576, ""),
            (512, 32768, "outputs"), (16384, 7168, "inputs"),
        ),
    ),
    "BERT-base": Model(768, 3072, 768, 768, gated=False),  # ViT-B has the same
    "BERT-large": Model(1024, 4096, 1024, 1024, gated=False),  # ViT-L, too
    "ViT-H": Model(1280, 5120, 1280, 1280, gated=False),  # Whisper-large, too
}  # fmt: skip


def layers(names=None, divisions=(1,)):
    """(inputs, outputs) of the layers of these models, each once, those of the first
    division first. Layers with fewer than 64 inputs or outputs are left out."""
    found = {}
    for division in divisions:
        for name in names or MODELS:
            for shape in MODELS[name].layers(division):
                if min(shape) >= 64:
                    found[shape] = None
    return list(found)
