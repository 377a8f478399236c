#!/bin/sh
# Prints which driver NVIDIA's own installer (a file .run) has put here; nothing where there is none. It leaves nvidia-uninstall behind (README of the driver,
# "Installing the NVIDIA Driver"), which no package of NVIDIA's repositories has. Read-only.
program=$(command -v nvidia-uninstall) || exit 0
rpm --query --file "$program" >/dev/null 2>&1 && exit 0
version=$(modinfo -F version nvidia 2>/dev/null | head -n 1 | tr -dc '[:alnum:].')
echo "driver ${version:-of an unknown version}, put here by NVIDIA's own installer ($program is of no package)"
