#!/bin/sh
# The first process of a node, in namespaces of its own: lays out the folders whose places in the file system are
# fixed, so that nothing of the machine is touched, and stays. When it dies, the kernel ends all that runs in the node.
set -eu
name=$1
folder=$2

echo "$name" >/proc/sys/kernel/hostname

# Makes $1 a folder of this namespace alone, in which entries can be made: all that it had is shown in it again.
copy_of_folder() {
    mkdir -p "$folder/real$1"
    mount --rbind "$1" "$folder/real$1"
    mount -t tmpfs tmpfs "$1"
    for entry in "$folder/real$1"/*; do
        if [ -L "$entry" ]; then
            cp -P "$entry" "$1/"
        elif [ -d "$entry" ]; then
            mkdir "$1/${entry##*/}"
            mount --rbind "$entry" "$1/${entry##*/}"
        elif [ -e "$entry" ]; then
            touch "$1/${entry##*/}"
            mount --bind "$entry" "$1/${entry##*/}"
        fi
    done
    umount -R "$folder/real$1"
}

copy_of_folder /var/lib
for own in /var/lib/kubelet /var/lib/cni /var/log; do # device plugins' sockets; the CNI cache; containers' logs
    mkdir -p "$own" "$folder/own$own"
    mount --bind "$folder/own$own" "$own"
done
mount -t tmpfs tmpfs /run # sockets of containerd's shims, network namespaces of pods

# kubelet wants these values for the whole machine, and would set them: it is shown files that have them already.
while read -r tunable value; do
    mkdir -p "$folder/tunables/${tunable%/*}"
    echo "$value" >"$folder/tunables/$tunable"
    mount --bind "$folder/tunables/$tunable" "/proc/sys/$tunable"
done <<END
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END

mount --make-rshared / # as on any machine; the tie to the machine's own mounts is cut before
trap '' CHLD # the kernel then buries orphans itself
echo ready
exec sleep infinity
