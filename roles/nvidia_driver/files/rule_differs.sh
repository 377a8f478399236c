#!/bin/sh
# Prints where the copy $2 of the udev rules $1 differs from them by more than the comment marks of this role. Read-only.
[ -e "$2" ] || { echo "$2 does not exist"; exit 0; }
sed 's/^# nvidia_driver: //' "$2" | diff "$1" - || [ $? -eq 1 ]
