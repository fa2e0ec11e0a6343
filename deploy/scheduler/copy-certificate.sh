#!/bin/sh
# Copies the scheduler's client certificate and the extender's CA from the cluster to this machine, if they have changed:
#   copy-certificate.sh [FOLDER], by default /etc/kubernetes/halfcard.
# In /etc/cron.daily it keeps the copy fresh. The scheduler reads tls.crt and tls.key at each connection, and ca.crt only when
# it starts: a new ca.crt is reported, so that cron mails it.
set -euf
umask 077
folder=${1:-/etc/kubernetes/halfcard}
export KUBECONFIG="${KUBECONFIG:-/etc/kubernetes/admin.conf}"

mkdir -p "$folder"
entries=$(kubectl -n halfcard-system get secret halfcard-scheduler-tls -o 'jsonpath={.data.ca\.crt} {.data.tls\.key} {.data.tls\.crt}')
set -- $entries
if test $# -ne 3; then
  echo "the Secret halfcard-system/halfcard-scheduler-tls is not filled yet: is halfcard-certs running? halfcard doctor" >&2
  exit 1
fi
for file in ca.crt tls.key tls.crt; do
  echo "$1" | base64 -d >"$folder/$file.new"
  test -s "$folder/$file.new"
  shift
done

for file in ca.crt tls.key tls.crt; do
  if cmp -s "$folder/$file.new" "$folder/$file"; then
    rm "$folder/$file.new"
  else
    test $file != ca.crt || test ! -e "$folder/$file" || echo "$folder/$file has changed: restart kube-scheduler"
    mv "$folder/$file.new" "$folder/$file"
  fi
done
