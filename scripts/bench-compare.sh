#!/bin/bash
# Compares the benchmarks of the working tree with those of the previous tag: both are built,
# and run in turns, COUNT times each, so that a machine that changes its speed does so for
# both. What benchstat makes of it is printed. PACKAGES, BENCH (an expression) and BENCHTIME
# choose what is run and for how long.
set -euo pipefail

benchstat=${1:?usage: bench-compare.sh path-to-benchstat}
packages=${PACKAGES:-. ./retry ./ratelimit ./breaker ./cache/memory}
bench=${BENCH:-.}
count=${COUNT:-6}
benchtime=${BENCHTIME:-100ms}

# On a commit that is a tag itself, with nothing changed since, the one before it.
from=HEAD
if git describe --exact-match --tags HEAD >/dev/null 2>&1 && git diff --quiet HEAD --; then
	from=HEAD^
fi
if ! tag=$(git describe --tags --abbrev=0 "$from" 2>/dev/null); then
	echo "bench-compare: no git tag before this commit, so there is nothing to compare with." >&2
	echo "bench-compare: with one, this compares the working tree with the latest." >&2
	exit 1
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tree" "$dir/old" "$dir/new"
git archive "$tag" | tar -x -C "$dir/tree"

# build makes a test binary of each package of a tree that has one, in a directory of its own.
build() { # tree, where to
	for p in $packages; do
		name=$(echo "$p" | tr -c 'a-z\n' _)
		if [ -d "$1/$p" ]; then
			(cd "$1" && go test -c -o "$2/$name" "$p")
		fi
	done
}
build "$dir/tree" "$dir/old"
build "$PWD" "$dir/new"

for round in $(seq "$count"); do
	echo "round $round of $count" >&2
	for side in old new; do
		for binary in "$dir/$side"/*; do
			[ -x "$binary" ] && [ -f "$binary" ] || continue
			(cd "$dir" && "$binary" -test.run '^$' -test.bench "$bench" -test.benchtime "$benchtime") >>"$dir/$side.txt"
		done
	done
done
mv "$dir/old.txt" "$dir/$tag.txt"
mv "$dir/new.txt" "$dir/working tree.txt"
cd "$dir"
"$benchstat" "$tag.txt" "working tree.txt"
