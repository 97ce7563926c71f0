# Starts a program in a root file system as a container runtime would: the root is read-only, except /tmp. The
# first argument is the root, the others are options of `unshare` and the program. Runs as process 1.
set -e
root=$1
shift
mount --bind "$root" "$root"
mount --bind "$root/tmp" "$root/tmp"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
exec unshare --root="$root" --wd=/ "$@"
