#!/bin/sh
# Makes the pair of keys for backups in the folder $1: private.asc opens what was encrypted for public.asc. At the controller, once.
# RSA, since GnuPG 2.0 of CentOS 7 knows no elliptic curves; without a passphrase, because the vault that keeps it has one.
set -eu
umask 077
home=$(mktemp -d)
trap 'gpgconf --homedir "$home" --kill gpg-agent; rm -rf "$home"' EXIT
trap 'exit 1' HUP INT TERM  # else dash would leave the private key there
mkdir -p "$1"
gpg --homedir "$home" --batch --quiet --passphrase '' --pinentry-mode loopback --quick-generate-key "backup of $2" rsa4096 encr never
gpg --homedir "$home" --batch --quiet --passphrase '' --pinentry-mode loopback --armor --export-secret-keys >"$1/private.asc.new"
gpg --homedir "$home" --batch --quiet --armor --export >"$1/public.asc.new"
mv "$1/private.asc.new" "$1/private.asc"
mv "$1/public.asc.new" "$1/public.asc"  # the last step: this file says that the other is there
