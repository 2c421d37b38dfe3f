#!/usr/bin/env bash
# Checks formatting (all C++ and Python files), clang-tidy (the given C++ files,
# else those that changed since the merge base), the lengths of files, the order
# of folders (docs/Architecture.md), that parts of schedules and storages are known
# by their interfaces alone, that results have a line for each record, shell
# syntax and Python.
# Usage: lint.sh [--fix] [--all] [FILE...]
#   --fix  repairs what can be repaired instead of reporting it
#   --all  clang-tidy on every C++ file (minutes)
# NM_LINT_BASE names the commit to compare with; default: where this branch left
# origin/main or main, else the commit before.

source "$(dirname "$0")/common.sh"

fix='' all='' files=()
for argument; do
  case $argument in
    --fix) fix=1 ;;
    --all) all=1 ;;
    -*) die "unknown option $argument: legal is --fix, --all" ;;
    *) files+=("$argument") ;;
  esac
done

# All files of the repository with one of the given endings, new ones too.
tracked() { git ls-files -z --cached --others --exclude-standard -- "$@"; }
existing() { while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done; }

# The commit that "changed" is relative to.
base_commit() {
  local head name base
  head=$(git rev-parse HEAD)
  for name in ${NM_LINT_BASE:-origin/main main}; do
    base=$(git merge-base HEAD "$name" 2>/dev/null) || continue
    [ "$base" = "$head" ] && [ -z "${NM_LINT_BASE:-}" ] || { echo "$base"; return; }
  done
  git rev-parse --verify -q HEAD~1 || echo "$head"
}

failed=()
step() { # step NAME COMMAND...
  local name=$1
  shift
  say "$name"
  "$@" || failed+=("$name")
}

format_cpp() {
  local how=(--dry-run -Werror)
  [ -z "$fix" ] || how=(-i)
  tracked '*.h' '*.cpp' '*.cu' | existing | xargs -0 -r "clang-format-$llvm" "${how[@]}"
}

tidy() {
  if [ -n "$all" ]; then
    mapfile -t files < <(git ls-files 'lib/*.cpp' 'tools/*.cpp' 'unittests/*.cpp')
  elif [ ${#files[@]} -eq 0 ]; then
    mapfile -t files < <({
      git diff --name-only --diff-filter=d "$(base_commit)" -- '*.cpp'
      git ls-files --others --exclude-standard -- '*.cpp'
    } | sort -u)
  fi
  # Only what the build compiles has the flags that clang-tidy needs.
  local file known=()
  for file in "${files[@]}"; do
    case $file in
      *.cpp) grep -qF "\"file\": \"$(realpath "$file")\"" \
        "$build/compile_commands.json" && known+=("$file") ;;
    esac
  done
  [ ${#known[@]} -gt 0 ] || { echo "no C++ file changed"; return 0; }
  local jobs
  jobs=$(nproc)
  [ -z "$fix" ] || jobs=1 # two repairs of one header would mix
  # The greps drop what clang-tidy says about its own progress.
  local noise='warnings? generated|^Suppressed|^Use -header-filter|Processing file'
  printf '%s\0' "${known[@]}" | xargs -0 -n 1 -P "$jobs" \
    "clang-tidy-$llvm" -p "$build" --quiet ${fix:+--fix} \
    > >(grep -vE "$noise") 2> >(grep -vE "$noise" >&2)
}

python_files() {
  local ruff=$venv/bin/ruff
  local where=(--quiet --config pyproject.toml bench python scripts test)
  if [ -n "$fix" ]; then
    "$ruff" check --fix "${where[@]}" && "$ruff" format "${where[@]}"
  else
    "$ruff" check --output-format concise "${where[@]}" &&
      "$ruff" format --diff "${where[@]}"
  fi
}

shell_files() {
  local file status=0
  for file in scripts/*.sh integrations/*/*.sh .ci/run; do
    bash -n "$file" || status=1
  done
  ! have shellcheck || shellcheck -x -P SCRIPTDIR -S warning scripts/*.sh .ci/run || status=1
  return $status
}

step "clang-format" format_cpp
# clang-tidy reads headers that the build generates.
if scripts/build.sh; then
  step "clang-tidy" tidy
else
  failed+=("clang-tidy (the build failed)")
fi
step "lengths" scripts/check_lengths.py
step "arrows" scripts/check_arrows.py
step "axes" scripts/check_axes.py
step "results" scripts/format_results.py --check bench/results/*.json
step "python" python_files
step "shell" shell_files
[ ${#failed[@]} -eq 0 ] || die "lint: ${failed[*]}"
say "lint: clean"
