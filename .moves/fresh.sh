#!/bin/sh
# The worktree as on branch main ($1), moved.
set -e
H=/work/house
cd /work/wt/house

git reset -q --hard; git clean -fdq src tests
git rm -rq --cached src tests >/dev/null; rm -rf src/mixedgm tests
git checkout -q ${1:-main} -- src tests docs benchmarks experiments stress release tools CONTRIBUTING.md README.md Makefile pyproject.toml CHANGELOG.md
python3 $H/move.py /work/wt/house
R=.venv/bin/ruff
$R check --fix -q --select I,F401,D202 src tests benchmarks experiments stress release docs tools || true
$R format -q .
PYTHONPATH=$H python3 $H/patch.py /work/wt/house
$R format -q .
$R check -q --output-format concise . | head -40
