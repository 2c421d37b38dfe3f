# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models of transformers, with random weights, and what they are called with."""

import torch

SIZES = dict(
    vocab_size=60,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
)
ENDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
_VIT = dict(image_size=32, patch_size=8, num_channels=4)
_WHISPER = dict(
    vocab_size=60,
    d_model=64,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=128,
    decoder_ffn_dim=128,
    num_mel_bins=8,
    max_source_positions=16,
    max_target_positions=16,
    decoder_start_token_id=1,
)
_GPT2 = dict(vocab_size=60, n_embd=64, n_layer=2, n_head=4, n_positions=32)
_FALCON = {key: SIZES[key] for key in list(SIZES)[:-1]}
_CLASSES = {
    "GPT2": ("GPT2LMHeadModel", {**_GPT2, **ENDS}),
    "Bert": ("BertForMaskedLM", SIZES),
    "ViT": ("ViTForImageClassification", {**SIZES, **_VIT}),
    "Whisper": ("WhisperForConditionalGeneration", {**_WHISPER, **ENDS}),
    "Phi3": ("Phi3ForCausalLM", {**SIZES, **ENDS, "num_key_value_heads": 2}),
    "GPTNeoX": ("GPTNeoXForCausalLM", {**SIZES, **ENDS}),
    "Falcon": ("FalconForCausalLM", {**_FALCON, **ENDS}),
    "Llama": ("LlamaForCausalLM", {**SIZES, **ENDS, "num_key_value_heads": 2}),
    "Bloom": (
        "BloomForCausalLM",
        dict(vocab_size=60, hidden_size=64, n_layer=2, n_head=4, **ENDS),
    ),
    "DistilBert": (
        "DistilBertModel",
        dict(vocab_size=60, dim=64, n_layers=2, n_heads=4, hidden_dim=128),
    ),
    "T5": (
        "T5EncoderModel",
        dict(vocab_size=60, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4),
    ),
    "ResNet": (
        "ResNetForImageClassification",
        dict(embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1] * 4,
             num_channels=4),
    ),
}  # fmt: skip
NAMES = tuple(_CLASSES)


def make(name, seed=0):
    """A model in evaluation."""
    import transformers

    torch.manual_seed(seed)
    kind, fields = _CLASSES[name]
    config = getattr(transformers, f"{name}Config")(**fields)
    return getattr(transformers, kind)(config).eval()


def inputs(name, seed=1):
    """Named arguments of a model."""
    draw = torch.Generator().manual_seed(seed)

    def tokens(count):
        return torch.randint(3, 60, (2, count), generator=draw)

    if name in ("ViT", "ResNet"):
        return dict(pixel_values=torch.randn(2, 4, 32, 32, generator=draw))
    if name == "Whisper":
        sound = torch.randn(2, 8, 32, generator=draw)
        return dict(input_features=sound, decoder_input_ids=tokens(5))
    return dict(input_ids=tokens(6))
