#!/bin/sh
# Makes the secrets of compose.yaml in deploy/secrets, once. It changes no secret that exists.
#
# Only the owner can enter the folder. The files in it are readable, because the users inside the containers read them.
set -eu
umask 022
cd "$(dirname "$0")"
mkdir -p secrets
chmod 700 secrets

random() {
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

for name in database_password api_token grafana_password; do
    test -s "secrets/$name" || random > "secrets/$name"
done
test -s secrets/database_url ||
    printf 'postgresql://silkline:%s@postgres/silkline' "$(cat secrets/database_password)" > secrets/database_url
echo "The token of the API is in $PWD/secrets/api_token, the password of Grafana's user admin in secrets/grafana_password."
