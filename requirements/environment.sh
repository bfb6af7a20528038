#!/bin/sh
# Prepares a virtual environment: checks the Python version, and replaces an environment that does not work here.
# usage: environment.sh FOLDER PYTHON...   (the first Python that is new enough creates the environment)
set -eu
venv=$1
shift
recent='import sys; sys.exit(sys.version_info < (3, 11))'
version='import sys; print(".".join(map(str, sys.version_info[:3])))'

# Why the environment cannot be used. Prints nothing if it can.
fault() {
  [ -f "$venv/pyvenv.cfg" ] || { echo 'it is incomplete'; return; }
  "$venv/bin/python" -c '' 2>/dev/null || { echo 'its Python does not run'; return; }
  "$venv/bin/python" -c "$recent" || { echo "it has Python $("$venv/bin/python" -c "$version")"; return; }
  "$venv/bin/python" -c 'import pip' 2>/dev/null || { echo 'it has no pip'; return; }
  grep -qsF "$(cd "$venv" && pwd -P)" "$venv/bin/activate" || echo 'it was created in another folder'
}

reason=''
if [ -e "$venv" ] || [ -L "$venv" ]; then
  reason=$(fault)
  [ -n "$reason" ] || exit 0
fi

found=''
for python in "$@"; do
  # A pyenv shim exists for versions that are not active. It fails when it runs.
  here=$("$python" -c "$version" 2>/dev/null) || continue
  if ! "$python" -c "$recent"; then
    found="$found$python is Python $here; "
    continue
  fi
  [ -z "$reason" ] || echo "Replacing $venv: $reason." >&2
  rm -rf "$venv"
  echo "Creating $venv with $python (Python $here)." >&2
  "$python" -m venv "$venv" && exit 0
  rm -rf "$venv"
  echo "error: $python cannot create a virtual environment" >&2
  echo '  try: install its venv module (Debian: apt-get install python3-venv)' >&2
  exit 1
done
echo 'error: no suitable Python' >&2
echo "  why: ${found}Headgate needs Python 3.11 or later${reason:+; $venv cannot be used: $reason}" >&2
echo '  try: install Python 3.11 or later, or name one: make up PYTHON=/path/to/python3.12' >&2
exit 1
