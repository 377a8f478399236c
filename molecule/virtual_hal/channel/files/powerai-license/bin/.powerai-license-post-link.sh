#!/bin/bash
# Stand-in of the virtual HAL: like IBM's package it asks for acceptance, and notes it.
if [ "${IBM_POWERAI_LICENSE_ACCEPT:-no}" != yes ]; then
    echo "The license is not accepted: set IBM_POWERAI_LICENSE_ACCEPT=yes" >&2
    exit 1
fi
mkdir -p "$PREFIX/share/powerai-license"
echo "accepted for $PKG_NAME $PKG_VERSION" >"$PREFIX/share/powerai-license/status"
