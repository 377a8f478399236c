#!/bin/sh
# What the units of nfs-utils are started with, from /etc/sysconfig/nfs.
[ ! -r /etc/sysconfig/nfs ] || . /etc/sysconfig/nfs
mkdir -p /run/sysconfig
cat >/run/sysconfig/nfs-utils <<END
RPCNFSDARGS="$RPCNFSDARGS ${RPCNFSDCOUNT:-8}"
RPCMOUNTDARGS="$RPCMOUNTDOPTS"
END
