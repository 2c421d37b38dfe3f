# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stand-ins of kernels for few and for many tokens, which read different forms."""

import types

import torch
import torch.nn.functional as F
from dense_cases import Form

from nm_sparse.torch import LinearSpec
from nm_sparse.torch.layers import kernels
from nm_sparse.torch.layers.ops import activate
from nm_sparse.torch.weight.stored_forms import STORED


class TwoPrograms:
    """Kernels in the place of compiled ones: those of few tokens read another form.

    calls:  which of both was called, in turn: "few" or "many".
    """

    def __init__(self, monkeypatch, many="canonical", few="bitmap"):
        self.forms, self.calls, self.made = {True: few, False: many}, [], 0
        monkeypatch.setattr(kernels, "find_kernels", self.find)
        monkeypatch.setattr(kernels, "stream_of", lambda x: 0)
        monkeypatch.setattr(STORED, "_forms", {})

    def find(self, spec, has_bias, device):
        assert spec.storage == "canonical" and spec.dense_from is None
        decodes = spec.decode_to is not None
        self.made += 1
        form = Form(spec.of_weight, self.forms[decodes])
        owner = self

        class Kernels(Form):
            def __init__(self):
                self.__dict__.update(form.__dict__)
                self.outputs = [spec.shape[0]]
                self.function = types.SimpleNamespace(
                    direct=self.direct, writes_to_arguments=True
                )

            def __call__(self, x, parts, bias, stream):
                assert x.ndim == 2 and x.is_contiguous()
                owner.calls.append("few" if decodes else "many")
                y = F.linear(x, self.dense(parts), bias)
                return activate(y, spec.activation)

            def direct(self, stream, x, parts, *rest):
                *bias, y = rest
                y.copy_(self(x, parts, bias[0] if bias else None, stream))
                return y

        return Kernels()


def call(layer, x):
    """The layer, as on a GPU, by its operator."""
    spec = LinearSpec.parse(layer.call_spec)
    with torch.no_grad():
        return kernels.run_linear(x, layer.operands(), layer.bias, spec)


def check(layer, x):
    wanted = layer.to_dense()(x)
    torch.testing.assert_close(call(layer, x), wanted, rtol=1e-4, atol=1e-5)


def forms_of():
    """All forms that are kept, by their keys."""
    return {key: form for one in STORED._forms.values() for key, form in one.items()}
