#!/bin/sh
# Called as lego calls its hooks: present|cleanup NAME TEXT. DNS_API and DNS_TOKEN come from the solver's env.
set -eu
action=$1 name=$2 text=$3
case $action in
present) method=PUT ;;
cleanup) method=DELETE ;;
*)
    echo "unknown action $action" >&2
    exit 2
    ;;
esac
curl --fail --silent --show-error --max-time 30 --request "$method" \
    --header "Authorization: Bearer $DNS_TOKEN" "$DNS_API/txt/$name/$text"
