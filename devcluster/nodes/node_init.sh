#!/bin/sh
# The first process of a node, in namespaces of its own: lays out the folders whose places in the file system are
# fixed, so that nothing of the machine is touched, and stays. When it dies, the kernel ends all that runs in the node.
set -eu
name=$1
folder=$2

echo "$name" >/proc/sys/kernel/hostname

# Makes $1 a folder of this namespace alone, in which entries can be made: what it had is led to by links.
folder_of_links() {
    real=$folder/real$1
    mkdir -p "$real"
    mount --rbind "$1" "$real"
    mount -t tmpfs tmpfs "$1"
    ln -s "$real"/* "$1"
    find "$real" -maxdepth 1 -type l -exec cp -P --remove-destination -t "$1" {} + # they may be relative
}

folder_of_links /etc
folder_of_links /var/lib
# Descriptions of devices; device plugins' sockets; the node agent's own; the CNI cache; containers' logs.
for own in /etc/cdi /var/lib/kubelet /var/lib/halfcard /var/lib/cni /var/log; do
    [ ! -L "$own" ] || rm "$own"
    mkdir -p "$own" "$folder/own$own"
    mount --bind "$folder/own$own" "$own"
done
mount -t tmpfs tmpfs /run # sockets of containerd's shims, network namespaces of pods, descriptions of devices

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
