# shellcheck shell=bash

# retry COMMAND... is for what asks a registry, which fails now and then.
retry() {
  local attempt
  for attempt in 1 2 3 4; do
    if "$@"; then return 0; fi
    printf 'attempt %d of "%s" failed\n' "$attempt" "$*" >&2
    sleep "$((attempt * 3))"
  done
  return 1
}
