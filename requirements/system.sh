#!/bin/sh
# Installs the system packages that the tests use, with apt-get and as root:
#
# - JDK 17 or later and Maven: download and run Apache Kafka
# - Chromium: reads the streams of the proxy in a browser
# - PostgreSQL: the target of pipelines
# - Node.js and npm: download and run Confluent's JavaScript client
# - curl, kcat and bash: run the examples of the README
# - jemalloc: the clients of the broker benchmark
#
# If a package cannot be installed, the tests that need it are skipped. With CI=true, they fail.
missing=""
command -v java >/dev/null 2>&1 || missing="$missing openjdk-17-jdk-headless"
command -v mvn >/dev/null 2>&1 || missing="$missing maven"
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
command -v curl >/dev/null 2>&1 || missing="$missing curl"
command -v kcat >/dev/null 2>&1 || missing="$missing kcat"
command -v bash >/dev/null 2>&1 || missing="$missing bash"
command -v chromium >/dev/null 2>&1 || command -v chromium-headless-shell >/dev/null 2>&1 ||
  command -v google-chrome >/dev/null 2>&1 || missing="$missing chromium"
command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
ldconfig -p 2>/dev/null | grep -q libjemalloc || missing="$missing libjemalloc2"
[ -z "$missing" ] && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  echo "installing$missing"
  apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
  echo "apt-get could not install$missing" >&2
  [ "${CI:-}" = true ] && exit 1
else
  echo "not installed:$missing (needs root and apt-get); the tests that need them will be skipped" >&2
fi
exit 0
