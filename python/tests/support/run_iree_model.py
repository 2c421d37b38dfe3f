# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls a function of a program that iree-compile made, in a process of its own: the
driver that a process loads is what LD_LIBRARY_PATH says when it starts.

Usage: run_iree_model.py DEVICE PROGRAM.vmfb PARAMETERS FUNCTION CALLS

PARAMETERS is a safetensors file, or `-`. CALLS is a folder: of each call.N.npz, arrays
are the arguments, in order; result.N.npz gets the results. Arrays of uint16 are bf16.
"""

import pathlib
import sys

import iree.runtime as rt
import ml_dtypes
import numpy as np


def load(device, program, parameters):
    context = rt.SystemContext(config=rt.Config(device))
    if parameters != "-":
        index = rt.ParameterIndex()
        index.load(parameters)
        provider = index.create_provider(scope="model")
        context.add_vm_module(
            rt.create_io_parameters_module(context.instance, provider)
        )
    context.add_vm_module(rt.VmModule.mmap(context.instance, program))
    return context.modules["module"]


def narrow(array):
    """Arrays that IREE takes: bf16 as such, and signless integers as signed ones."""
    if array.dtype == np.uint16:
        return array.view(ml_dtypes.bfloat16)
    return array.view(f"i{array.itemsize}") if array.dtype.kind == "u" else array


def widen(result):
    array = np.asarray(result.to_host())
    return array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array


def main():
    device, program, parameters, name, calls = sys.argv[1:]
    function = load(device, program, parameters)[name]
    folder = pathlib.Path(calls)
    for number in range(len(list(folder.glob("call.*.npz")))):
        arrays = np.load(folder / f"call.{number}.npz")
        arguments = [narrow(arrays[one]) for one in arrays.files]
        results = function(*arguments)
        if not isinstance(results, (list, tuple)):
            results = [results]
        np.savez(folder / f"result.{number}.npz", *map(widen, results))


if __name__ == "__main__":
    main()
