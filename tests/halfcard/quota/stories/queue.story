# Pods are admitted oldest first, as many as fit.

ledger a cores=100
wait d cores=30 --for:a --second:40
wait b cores=30 --for:a --second:20
wait c cores=30 --for:a --second:30
wait a cores=30 --for:a --second:11
queue
----
admit a, b, c
d is first in line for a: cores wants 30, 90/100 used, 20 missing

# Priority goes before age.

ledger a cores=100
wait old cores=60 --for:a
wait urgent cores=60 --for:a --priority:5 --second:50
queue
----
admit urgent
old is first in line for a: cores wants 60, 60/100 used, 20 missing

# A small pod does not pass a large one that waits for the same quota.

ledger a cores=100
ledger b cores=50
wait large cores=101 --for:a
wait small cores=1 --for:a --second:20
wait other cores=1 --for:b --second:30
queue
----
admit other
large is first in line for a: cores wants 101, 0/100 used, 1 missing

# A pod that waits for several quotas keeps its place in each of them.

ledger a cores=100
ledger b cores=50
wait both cores=60 --for:a,b
wait behind cores=10 --for:a --second:20
queue
----
admit none
both is first in line for b: cores wants 60, 0/50 used, 10 missing

# A quota without a ledger, or not counted yet, admits no pod.

ledger a cores=100 --counted:no
wait one cores=30 --for:a
wait two cores=30 --for:x
queue
----
admit none
one is first in line for a: not counted yet
two is first in line for x: not counted yet

# A pod that has its reservation is admitted, also when the quota is full.

ledger a cores=100
reserve a p cores=100
wait p cores=100 --for:a
queue
----
admit p

# A pod without a quota does not wait.

wait p cores=30
queue
----
admit p
