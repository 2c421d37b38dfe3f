# Thin: each target is one script or one line. `make help` lists them.

.DEFAULT_GOAL := build
.PHONY: help build check quick demo lint format parts static docs clean

help:   ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10
build:  ## install what is missing, configure and build
	@scripts/build.sh
check:  ## build and run every test; the last line is "N passed, N failed"
	@scripts/check.sh
quick:  ## as check, without the tests that are marked as slow
	@scripts/check.sh quick
demo:   ## compile and run each file of examples/
	@scripts/demo.sh
lint:   ## formatting, clang-tidy on changed files, Python
	@scripts/lint.sh
format: ## as lint, fixing what can be fixed
	@scripts/lint.sh --fix
parts:  ## build with a few products, transfers and storages only, and run their tests
	@NM_PARTS_DIR=build scripts/check_products.sh
static: ## nm-opt and the other tools without libMLIR.so, in build-static
	@scripts/build.sh static
docs:   ## fill the generated parts of README.md and docs/
	@scripts/build.sh dev nm-compile nm-run && build/venv/bin/python scripts/update_docs.py
clean:  ## remove every build folder
	@rm -rf build build-*
