# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C++ runtime library, for tests of its packing."""

import ctypes

import pytest
from runtime_packing import LIBRARY


@pytest.fixture(scope="module")
def runtime():
    library = ctypes.CDLL(str(LIBRARY))
    library.nmsLastError.restype = ctypes.c_char_p
    library.nmsComponentCount.restype = ctypes.c_int64
    library.nmsCountFree.restype = ctypes.c_int64
    return library


@pytest.fixture
def raised(runtime):
    """The messages of entry points of compiled code."""
    messages = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
    handler = kind(lambda text, _: messages.append(text.decode()))
    runtime.nmsSetErrorHandler(handler, None)
    yield messages
    runtime.nmsSetErrorHandler(None, None)
