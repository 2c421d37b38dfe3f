"""Fails unless a command ends with the given status. Usage: status.py N CMD..."""

import subprocess
import sys

status = subprocess.run(sys.argv[2:]).returncode
sys.exit(0 if status == int(sys.argv[1]) else f"status is {status}")
