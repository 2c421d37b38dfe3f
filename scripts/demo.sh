#!/usr/bin/env bash
# Takes each file of examples/ through the compiler to PTX, runs the kernels, on the
# GPU if there is one and emulated if not, and compares the results with a float64
# product. Prints a few lines for each example: what it is, the schedule of its
# kernels, and whether they are right. The rest (each stage, the candidates, what
# ptxas says where there is one) goes to a log for each example.
# A line "// nm-run: ARGS" in an example gives nm-run its arguments.
# Usage: demo.sh [FILE...]; NM_CHIP picks another chip than sm_90a, NM_DEMO_DIR
# another folder than build/demo, and NM_NO_BUILD=1 takes the tools as they are.

source "$(dirname "$0")/common.sh"
chip=${NM_CHIP:-sm_90a}
out=${NM_DEMO_DIR:-$build/demo}
[ $# -gt 0 ] || set -- examples/*.mlir
mkdir -p "$out"

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

# Ninja has one line on a terminal, and one for each file elsewhere.
build_tools() {
  if [ -t 1 ]; then
    scripts/build.sh dev nm-compile nm-run
  else
    scripts/build.sh dev nm-compile nm-run >"$out/build.log" 2>&1 || {
      tail -n 20 "$out/build.log" >&2
      die "the build failed: see ${out#"$root"/}/build.log"
    }
  fi
}

# Compiles and runs $1 under the name $2. All that it prints belongs into a log.
take_through() {
  local arguments
  read -ra arguments <<<"$(sed -n 's|^// nm-run: *||p' "$1")"
  "$build/bin/nm-compile" "$1" -o "$out/$2.ptx" --chip "$chip" \
    --manifest "$out/$2.json" --explain &&
    report_ptxas "$out/$2.ptx" &&
    "$build/bin/nm-run" "$1" --check "${device[@]}" "${arguments[@]}"
}

[ -n "${NM_NO_BUILD:-}" ] || {
  say "building nm-compile and nm-run (the first time takes some minutes)"
  build_tools
}
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
  log=$out/$name.log
  say "$file: $(sed -n '1s|^// *||p' "$file")"
  verdict=right
  take_through "$file" "$name" >"$log" 2>&1 || {
    verdict=WRONG
    failed+=("$name")
  }
  # The lines of nm-run on schedules and results, and why a step gave up.
  grep -E '^  (schedule|result|worst) |^nm-(run|compile): |error: ' "$log" |
    grep -v 'warning: ' | tail -n 5 || true
  echo "  $verdict; each stage, PTX and manifest: ${out#"$root"/}/$name.{log,ptx,json}"
done
[ ${#failed[@]} -eq 0 ] || die "these examples failed: ${failed[*]}"
say "$# examples compiled and checked"
