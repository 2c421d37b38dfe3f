#!/usr/bin/env bash
# Builds, runs every test, and ends with one line: "N passed, N failed", and
# ", N skipped" when tests lack what they need here (a GPU, ptxas).
# The tests: lit (test/), gtest (unittests/), pytest (python/tests, and
# test/Package: a project that uses the installed package).

source "$(dirname "$0")/common.sh"
results=$build/results

# Whatever happens, the last line is the summary.
broken=()
finish() {
  local status=$?
  [ "$status" -eq 0 ] || broken+=("check stopped")
  python3 scripts/summarize.py "$results" "${broken[@]}" && exit 0 || exit 1
}
trap finish EXIT
rm -rf "$results"
mkdir -p "$results"

if ! scripts/build.sh; then
  broken+=("build")
  exit 0
fi

say "lit"
"$(command -v "lit-$llvm" || command -v lit)" -sv "$build/test" \
  --xunit-xml-output "$results/lit.xml" || [ -f "$results/lit.xml" ] ||
  broken+=("lit")

say "gtest"
while IFS= read -r -d '' program; do
  name=$(basename "$program")
  "$program" --gtest_brief=1 --gtest_output="json:$results/gtest-$name.json" ||
    [ -f "$results/gtest-$name.json" ] || broken+=("$name")
done < <(find "$build/unittests" -type f -executable -name '*Tests' -print0 2>/dev/null)

say "pytest"
NM_BUILD_DIR=$build HYPOTHESIS_STORAGE_DIRECTORY=$build/hypothesis \
  "$python" -m pytest -q -c pyproject.toml --rootdir . \
  -p no:cacheprovider --junitxml "$results/pytest.xml" python/tests test/Package ||
  [ -f "$results/pytest.xml" ] || broken+=("pytest")
exit 0
