#!/bin/sh
# fresh scratch tree from branch main's commit $1, moved
set -e
cd /work/wt/house
git checkout -q "${1:-main}" -- src tests docs benchmarks experiments stress release tools CONTRIBUTING.md README.md Makefile pyproject.toml
git clean -fdq src tests
