#!/bin/sh
# Sees that a redis-server binary is there for the tests to start: on Debian and its
# relatives, as root or with sudo, by installing the package; elsewhere by saying how.
# It starts no server, and leaves none running.
set -eu

if command -v redis-server >/dev/null 2>&1; then
	exit 0
fi

how() {
	cat >&2 <<-'TEXT'
		The tests need a redis-server binary (6.2 or later) on the PATH.
		  Debian, Ubuntu   apt-get install redis-server
		  Fedora           dnf install redis
		  macOS            brew install redis
		With Docker instead, run  docker run --rm -p 6379:6379 redis:7  and set
		RESILIENCE_TEST_REDIS=redis://127.0.0.1:6379 : the tests that need just one server then
		use it, and those that kill servers are skipped by a plain  go test ./...
	TEXT
	exit 1
}

command -v apt-get >/dev/null 2>&1 || how
if [ "$(id -u)" -eq 0 ]; then
	sudo=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
	sudo=sudo
else
	how
fi

# The package starts a server of its own, which nobody here wants: policy-rc.d is how
# Debian is told not to (exit status 101). One that is there already is respected.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap '$sudo rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
	$sudo chmod 755 "$policy"
fi
$sudo apt-get update -q
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends redis-server
command -v redis-server
