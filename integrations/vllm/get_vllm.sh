#!/usr/bin/env bash
# Puts the Python files of a release of vLLM, and what importing its linear layers
# needs, into build/venv/vllm, for the tests of the plugin. Nothing of it runs on a
# GPU. Downloads about 400 MB, since a wheel is one file, and keeps 160 MB.
# Usage: get_vllm.sh [VERSION]

source "$(dirname "$0")/../../scripts/common.sh"

version=${1:-0.33.0} folder=$venv/vllm
# What vLLM imports on the way to its linear layers and its loader; the versions are
# those that it asks for.
modules=(
  aiohappyeyeballs aiohttp aiosignal apache-tvm-ffi==0.1.11 attrs cachetools cbor2
  certifi charset-normalizer compressed-tensors==0.17.0 einops 'fastapi<0.137'
  frozenlist 'llguidance<1.8' loguru msgspec multidict openai opentelemetry-api
  oss-harmony partial-json-parser prometheus_client propcache psutil py-cpuinfo
  pybase64 pyzmq requests sniffio starlette urllib3 uvloop xgrammar==0.2.8 yarl
)

[ "$(cat "$folder/version" 2>/dev/null)" != "$version ${modules[*]}" ] || exit 0
[ -x "$python" ] || die "there is no $python: run scripts/bootstrap.sh first"
have_torch=$("$python" -c 'import torch, transformers' 2>&1) ||
  die "$python lacks PyTorch: run NM_WITH_TORCH=1 scripts/bootstrap.sh ($have_torch)"

say "getting the Python files of vLLM $version"
rm -rf "$folder"
mkdir -p "$folder"
pip=("$python" -m pip --disable-pip-version-check)
"${pip[@]}" download --quiet --no-deps --dest "$folder/wheel" "vllm==$version"
"$python" - "$folder" <<'END'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
(wheel,) = (folder / "wheel").iterdir()
with zipfile.ZipFile(wheel) as whole:
    for name in whole.namelist():
        if name.endswith(".py") or ".dist-info/" in name:
            whole.extract(name, folder)
END
rm -r "$folder/wheel"
"${pip[@]}" install --quiet --no-deps --target "$folder/deps" "${modules[@]}"
printf '%s' "$version ${modules[*]}" >"$folder/version"
