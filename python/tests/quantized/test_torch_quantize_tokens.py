# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations as elements of 8 bits with scales, on the CPU."""

import pytest

torch = pytest.importorskip("torch")

from scaled_cases import ELEMENTS, LARGEST, rounded  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import quantize_tokens  # noqa: E402

BOTH = pytest.mark.parametrize("elements", ELEMENTS)
# Half the distance of two elements, relative to one, or to the largest of a token.
ERRORS = {"e4m3": 1 / 16, "int8": 1 / 254}


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tokens(elements, dtype):
    torch.manual_seed(0)
    x = (torch.randn(2, 5, 33) * torch.logspace(-4, 3, 5)[:, None]).to(dtype)
    x[0, 1] = 0
    found, scale = quantize_tokens(x, elements)
    assert found.shape == x.shape and scale.shape == (2, 5, 1)
    assert scale.dtype == torch.float32 and bool((scale > 0).all())
    y = found.double() * scale
    torch.testing.assert_close(y, rounded(x, elements), rtol=1e-5, atol=1e-12)
    error = (y - x.double()).abs()
    bound = x.double().abs().amax(-1, keepdim=True) if elements == "int8" else x.abs()
    smallest = x.double().abs().amax(-1, keepdim=True) * 2**-18
    assert bool((error <= bound * ERRORS[elements] * 1.01 + smallest).all())
    one = torch.tensor(0.01)
    found, scale = quantize_tokens(x, elements, one)
    assert scale is one
    y = rounded(x, elements, one.double())
    torch.testing.assert_close(found.double() * one, y, rtol=1e-5, atol=1e-12)
    assert float((found.double()).abs().max()) <= LARGEST[elements]
    empty, scale = quantize_tokens(x[:, :, :0], elements)
    assert empty.shape == (2, 5, 0) and scale.shape == (2, 5, 1)
    x[1, 2, 3] = float("nan")
    _, scale = quantize_tokens(x, elements)
    assert bool(scale[1, 2].isnan()) and int(scale.isnan().sum()) == 1


@BOTH
def test_rows_alone(elements):
    """The operator that compiled graphs have for long rows computes the same."""
    kind = "i8" if elements == "int8" else "f8E4M3FN"
    for shape in ((3, 40), (2, 3, 5), (0, 8), (4, 0)):
        x = torch.randn(shape, dtype=torch.bfloat16)
        found = torch.ops.nm_sparse.quantize_rows(x, kind)
        for one, other in zip(found, quantize_tokens(x, elements)):
            assert one.shape == other.shape and one.dtype == other.dtype
            assert torch.equal(one.float(), other.float())
        torch.library.opcheck(torch.ops.nm_sparse.quantize_rows, (x, kind))


def test_wrong_tokens_are_named():
    x = torch.randn(2, 8)
    for operands, said in (
        ((x, "e5m2"), "elements is 'e5m2'"),
        ((x, None), "elements is None"),
        ((x.to(torch.float8_e4m3fn),), "x is \\[2, 8\\] of torch.float8_e4m3fn"),
        ((x, "int8", torch.ones(1)), "scale is \\[1\\]"),
    ):
        with pytest.raises(EncodingError, match=said):
            quantize_tokens(*operands)
