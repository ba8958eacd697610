#!/usr/bin/env bash
# Gradescope runs this script once, as root, after autograder.zip was uploaded. The script makes the
# environment in which every submission is graded.
set -euo pipefail
umask 022 # submissions run as other users, who need to read Python and its packages

root="${AUTOGRADER_ROOT:-/autograder}"
source="$root/source"
environment="$root/environment"

# This folder holds the references, the hidden tests and the seed.
chmod -R go-rwx "$source"

find_python() { # prints the first Python that is new enough and can make an environment
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$name" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
      echo "$name"
      return
    fi
  done
  return 1
}

install_python() {
  local name
  export DEBIAN_FRONTEND=noninteractive
  apt-get update
  for name in python3.14 python3.13 python3.12 python3.11; do
    if apt-get install -y "$name" "$name-venv"; then
      return
    fi
  done
  echo "setup.sh: this image has no Python 3.11 or newer: choose a newer one on Gradescope" >&2
  return 1
}

if [ ! -x "$environment/bin/python" ]; then
  find_python > /dev/null || install_python
  "$(find_python)" -m venv "$environment"
fi

if [ -f "$source/pip.conf" ]; then
  export PIP_CONFIG_FILE="$source/pip.conf"
fi
# The versions are those with which the bundle was made. Delete a line there to get the newest.
export PIP_CONSTRAINT="$source/constraints.txt"
"$environment/bin/python" -m pip install --disable-pip-version-check "$source"

# Print the isolation layers into the log of the build. Each result also names the active layers.
"$environment/bin/grader" doctor --course "$source" || true
