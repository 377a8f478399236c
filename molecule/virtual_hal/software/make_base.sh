#!/bin/sh
# make_base.sh FOLDER [FILE...]: the smallest root folder that a build can start from: a shell, a few programs, and their libraries
# and those of the files, taken from this node. What lies beside a file, as in a conda environment, is the file's and no part of the base.
set -e
base=$1
shift
mkdir -p "$base"
cd "$base"
mkdir -p bin etc dev proc sys tmp root home var/tmp usr srv
chmod 1777 tmp var/tmp
for program in sh cat chmod chown echo env id kill ln ls mkdir mknod mv rm sleep touch; do
  path=$(PATH=/usr/bin:/bin command -v "$program" | grep / || echo "/usr/bin/$program")
  cp -L "$path" bin/
  set -- "$@" "$path"
done
for file in "$@"; do
  ldd "$file" | sed -n 's/.*[ \t]\(\/[^ ]*\) (0x.*/\1/p' | grep -E '^/(usr/)?lib' | while read -r library; do
    mkdir -p ".$(dirname "$library")"
    cp -nL "$library" ".$library"
  done
done
ln -s ../bin usr/bin
echo root:x:0:0:root:/root:/bin/sh >etc/passwd
echo root:x:0: >etc/group
