# Prints with how many threads, and for which versions, the kernel's NFS server runs.
read -r threads 2>/dev/null </proc/fs/nfsd/threads || threads=0
if [ "$threads" -eq 0 ]; then
  echo "not running"
  exit
fi
read -r versions </proc/fs/nfsd/versions || exit
shown=
for version in $versions; do
  case $version in
    +*.*) ;;
    +*) shown="$shown,${version#+}" ;;
  esac
done
echo "$threads threads, versions ${shown#,}"
