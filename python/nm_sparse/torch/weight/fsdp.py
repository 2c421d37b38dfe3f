# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How FSDP2 gathers the parts of a packed weight that several devices have."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from ...encoding import packed_shapes
from .spec import SCALE
from .stored_forms import forget_forms


class ShardedGather:
    """The methods by which FSDP2 gathers a weight. The whole weight has dense
    gradients, which FSDP2 can reduce and scatter."""

    def fsdp_pre_all_gather(
        self, mesh: Any, size: Any, stride: Any, module: nn.Module, policy: Any
    ) -> Tuple[Tuple[Tensor, ...], Tuple[Any, ...]]:
        weight: Any = self
        dtype = getattr(policy, "param_dtype", None) or weight.dtype
        parts = dict(weight.components)
        if not weight.has_scale:
            parts["values"] = parts["values"].to(dtype)
        dim = 0 if weight.matrix[0] != size[0] else 1
        flat = tuple(part.contiguous() for part in parts.values())
        own = weight.encoding, tuple(size), dtype
        return flat, (tuple(parts), *own, dim, mesh.size())

    def fsdp_post_all_gather(
        self,
        outputs: Sequence[Tensor],
        metadata: Any,
        dtype: torch.dtype,
        *,
        out: Optional[Tensor] = None,
    ) -> Any:
        names, encoding, size, scaled, dim, count = metadata
        shapes = packed_shapes(encoding, size)
        parts = {}
        for name, flat in zip(names, outputs):
            ranks = flat.reshape(count, -1)
            if name == "perm" or (name == SCALE and dim == 1):
                parts[name] = ranks[0].clone()
                continue
            if name == SCALE:
                parts[name] = ranks.flatten().clone()
                continue
            extent = list(shapes[name])
            extent[1 - dim] //= count
            each = ranks.reshape(count, *extent)
            parts[name] = torch.cat(list(each), dim=1 - dim)
        if out is not None:
            held: Any = getattr(out, "_local_tensor", out)  # of a DTensor
            for name, part in parts.items():
                own = getattr(held, name)
                with torch.autograd._unsafe_preserve_version_counter(own):
                    own.copy_(part)
            forget_forms(held.values)
            return None
        make: Any = type(self)
        weight = make(parts, encoding, size, has_dense_gradient=True, dtype=scaled)
        return weight, tuple(parts.values())
