#!/usr/bin/env bash
# Builds, runs every test, and ends with one line: "N passed, N failed", and
# ", N skipped" when tests lack what they need here (a GPU, ptxas).
# The tests: lit (test/), gtest (unittests/), pytest (python/tests, and
# test/Package: a project that uses the installed package).
# Usage: check.sh [quick]. Quick leaves out what is marked as slow: lit tests that
# require nm-slow, pytest's with the mark "slow", those of PyTorch and of the package.

source "$(dirname "$0")/common.sh"
results=$build/results
case ${1:-} in
  '') quick='' ;;
  quick) quick=1 ;;
  *) die "unknown argument $1: legal is quick" ;;
esac

# Whatever happens, the last line is the summary.
broken=()
finish() {
  local status=$?
  [ "$status" -eq 0 ] || broken+=("check stopped")
  [ -z "${pytest_id:-}" ] || kill "$pytest_id" 2>/dev/null || true
  python3 scripts/summarize.py "$results" "${broken[@]}" && exit 0 || exit 1
}
trap finish EXIT
rm -rf "$results"
mkdir -p "$results"

if ! scripts/build.sh; then
  broken+=("build")
  exit 0
fi

# Pytest is one process. It runs beside lit, whose last test would else leave all
# cores but one idle, and says what it has to say after it.
which=(python/tests test/Package)
[ -z "$quick" ] || which=(python/tests -m "not slow" --ignore-glob "*/test_torch_*")
NM_BUILD_DIR=$build HYPOTHESIS_STORAGE_DIRECTORY=$build/hypothesis \
  "$python" -m pytest -q -c pyproject.toml --rootdir . --durations 10 \
  -p no:cacheprovider --junitxml "$results/pytest.xml" "${which[@]}" \
  >"$build/pytest.log" 2>&1 &
pytest_id=$!

say "lit"
"$(command -v "lit-$llvm" || command -v lit)" -sv "$build/test" ${quick:+--param quick=1} \
  --xunit-xml-output "$results/lit.xml" || [ -f "$results/lit.xml" ] ||
  broken+=("lit")

say "gtest"
while IFS= read -r -d '' program; do
  name=$(basename "$program")
  "$program" --gtest_brief=1 --gtest_output="json:$results/gtest-$name.json" ||
    [ -f "$results/gtest-$name.json" ] || broken+=("$name")
done < <(find "$build/unittests" -type f -executable -name '*Tests' -print0 2>/dev/null)

say "pytest"
wait "$pytest_id" || [ -f "$results/pytest.xml" ] || broken+=("pytest")
pytest_id=''
cat "$build/pytest.log"
exit 0
