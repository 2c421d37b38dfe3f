#!/usr/bin/env bash
# Takes each file of examples/ through the compiler to PTX, shows what ptxas
# makes of it where there is one, runs the kernels, on the GPU if there is one
# and emulated if not, and compares the results with a float64 product.
# A line "// nm-run: ARGS" in an example gives nm-run its arguments.
# Usage: demo.sh [FILE...]; NM_CHIP picks another chip than sm_90a.

source "$(dirname "$0")/common.sh"
chip=${NM_CHIP:-sm_90a}
out=$build/demo
[ $# -gt 0 ] || set -- examples/*.mlir

# Assembles $1 and prints, for each kernel, its registers and what it spills.
report_ptxas() {
  have ptxas || return 0
  ptxas -v -arch="$chip" "$1" -o "${1%.ptx}.cubin" 2>"${1%.ptx}.ptxas" || {
    cat "${1%.ptx}.ptxas" >&2
    return 1
  }
  awk -F"'" '
    /Compiling entry function/ { kernel = $2 }
    /spill stores/ { split($0, s, ","); spills = s[2] "," s[3] }
    /Used [0-9]+ registers/ {
      match($0, /[0-9]+ registers/)
      print "  ptxas: " kernel ": " substr($0, RSTART, RLENGTH) "," spills
    }' "${1%.ptx}.ptxas" | sed 's/,  */, /g'
}

scripts/build.sh dev nm-compile nm-run
mkdir -p "$out"
if "$build/bin/nm-run" --probe-device >"$out/device" 2>&1; then
  say "the kernels run on $(cat "$out/device")"
  device=(--device cuda)
else
  say "there is no GPU here: the kernels are emulated as on $chip"
  device=(--device emulate --chip "$chip")
fi
failed=()
for file; do
  name=$(basename "$file" .mlir)
  read -ra arguments <<<"$(sed -n 's|^// nm-run: *||p' "$file")"
  printf '\n'
  say "$file: $(sed -n '1s|^// *||p' "$file")"
  "$build/bin/nm-compile" "$file" -o "$out/$name.ptx" --chip "$chip" \
    --manifest "$out/$name.json" --explain &&
    report_ptxas "$out/$name.ptx" &&
    "$build/bin/nm-run" "$file" --check "${device[@]}" "${arguments[@]}" || failed+=("$name")
done
printf '\n'
[ ${#failed[@]} -eq 0 ] || die "these examples failed: ${failed[*]}"
say "$# examples compiled and checked; PTX and manifests are in ${out#"$root"/}"
