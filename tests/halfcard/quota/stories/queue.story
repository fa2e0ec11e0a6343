# Pods are admitted oldest first, as many as fit.

ledger a cores=100
wait d cores=30 --for:a --second:40
wait b cores=30 --for:a --second:20
wait c cores=30 --for:a --second:30
wait a cores=30 --for:a --second:11
queue
----
admit a, b, c
d waits for a: cores wants 30, 90/100 used, 20 missing

# Priority goes before age.

ledger a cores=100
wait old cores=60 --for:a
wait urgent cores=60 --for:a --priority:5 --second:50
queue
----
admit urgent
old waits for a: cores wants 60, 60/100 used, 20 missing

# A small pod does not pass a large one that waits for the same amount.

ledger a cores=100
ledger b cores=50
wait large cores=101 --for:a
wait small cores=1 --for:a --second:20
wait other cores=1 --for:b --second:30
queue
----
admit other
large waits for a: cores wants 101, 0/100 used, 1 missing
small waits for a: cores behind large

# A pod that lacks room in its team's quota keeps nobody from the quota that the teams share.

ledger own cores=50
ledger shared cores=100
wait large cores=60 --for:own,shared
wait small cores=10 --for:own,shared --second:20
wait other cores=30 --for:shared --second:30
queue
----
admit other
large waits for own: cores wants 60, 0/50 used, 10 missing
small waits for own: cores behind large

# Each pod names the last one before it that waits for the same.

ledger a cores=100
wait one cores=101 --for:a
wait two cores=30 --for:a --second:20
wait three cores=30 --for:a --second:30
queue
----
admit none
one waits for a: cores wants 101, 0/100 used, 1 missing
two waits for a: cores behind one
three waits for a: cores behind two

# Who waits for whole cards does not keep shares from the cores; the other way round, cards need cores too.

ledger a cores=300 cards=0
wait whole cores=100 cards=1 --for:a
wait share cores=30 shares=1 --for:a --second:20
queue
----
admit share
whole waits for a: cards wants 1, 0/0 used, 1 missing

ledger a cores=20 cards=1
queue
----
admit none
whole waits for a: cores wants 100, 0/20 used, 80 missing
share waits for a: cores behind whole

# A person who has used up the own amount keeps no other person waiting.

ledger a cores=100 cores_per_u=30
wait first cores=40 cores_per_u=alice=40 --for:a
wait second cores=10 cores_per_u=alice=10 --for:a --second:20
wait bob cores=30 cores_per_u=bob=30 --for:a --second:30
queue
----
admit bob
first waits for a: cores per u=alice wants 40, 0/30 used, 10 missing
second waits for a: cores per u=alice behind first

# A pod that waits for a quota to be counted keeps nobody from another one.

ledger a cores=100 --counted:no
ledger b cores=100
wait one cores=30 --for:a,b
wait two cores=30 --for:b --second:20
queue
----
admit two
one waits for a: quota usage is still being initialised

# A quota without a ledger, or not counted yet, admits no pod.

ledger a cores=100 --counted:no
wait one cores=30 --for:a
wait two cores=30 --for:x
queue
----
admit none
one waits for a: quota usage is still being initialised
two waits for x: quota usage is still being initialised

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
