# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts: where things are, and how to speak.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

llvm=22
build=${NM_BUILD_DIR:-$root/build}
venv=${NM_VENV:-$root/build/venv}
python=$venv/bin/python

say() { printf '==> %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Succeeds when version $1 is at least version $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }

# A command that pip may have installed as a shim without a program behind it.
works() { have "$1" && "$1" --version >/dev/null 2>&1; }

cmake_version() { cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p'; }
