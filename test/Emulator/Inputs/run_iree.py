"""Runs @both of a module on IREE's cuda driver: run_iree.py MODULE [FLAG...]"""

import sys

import iree.runtime as iree
import numpy as np

iree.flags.parse_flags(*sys.argv[2:])
for device in iree.get_driver("cuda").query_available_devices():
    print("device:", device["name"])
config = iree.Config("cuda")
with open(sys.argv[1], "rb") as file:
    module = iree.VmModule.copy_buffer(config.vm_instance, file.read())
context = iree.SystemContext(vm_modules=[module], config=config)
both = context.modules.module["both"]
ours, _ = both(np.arange(8, dtype=np.float32), 5)
print("ours:", ours.to_host().tolist())
