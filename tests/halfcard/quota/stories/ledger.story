# A reservation counts until it is committed, and then once.

ledger gpu cores=100 cards=2
reserve gpu a cores=30
----
cores 30/100, cards 0/2; reserved for a

commit gpu a:cores=30
----
cores 30/100, cards 0/2

commit gpu
----
cores 0/100, cards 0/2

# A refusal names everything that is short.

ledger gpu cores=100 cards=2
reserve gpu a cores=80 cards=2
----
cores 80/100, cards 2/2; reserved for a

reserve gpu b cores=30 cards=1 memory=7
----
contended: cores wants 30, 80/100 used, 10 missing; cards wants 1, 2/2 used, 1 missing

# A lowered limit refuses only pods that want what is short.

ledger gpu cores=100 cards=2
reserve gpu a cores=80
limit gpu cores=50 cards=2
----
cores 80/50, cards 0/2; reserved for a; over by cores 30

reserve gpu b cards=1
----
cores 80/50, cards 1/2; reserved for a b; over by cores 30

reserve gpu c cores=1
----
contended: cores wants 1, 80/50 used, 31 missing

# A limit for each value of a label is counted for each value.

ledger gpu cores=100 cores_per_user=50
reserve gpu a cores=40 cores_per_user=alice=40
----
cores 40/100, cores per user 0/50, cores per user=alice 40; reserved for a

reserve gpu b cores=20 cores_per_user=alice=20
----
contended: cores per user=alice wants 20, 40/50 used, 10 missing

reserve gpu b cores=50 cores_per_user=bob=50
----
cores 90/100, cores per user 0/50, cores per user=alice 40, cores per user=bob 50; reserved for a b

limit gpu cores_per_user=45
----
cores per user 0/45, cores 90, cores per user=alice 40, cores per user=bob 50; reserved for a b; over by cores per user=bob 5

# A pod with a reservation is not charged again.

ledger gpu cores=100
reserve gpu a cores=90
reserve gpu a cores=90
----
cores 90/100; reserved for a

# Before the usage is counted, nothing is reserved.

ledger gpu cores=100 --counted:no
reserve gpu a cores=1
----
busy: quota usage is still being initialised

commit gpu
reserve gpu a cores=1
----
cores 1/100; reserved for a

# A released amount can be reserved again.

ledger gpu cores=100
reserve gpu a cores=100
release gpu a
reserve gpu b cores=100
----
cores 100/100; reserved for b

# A pod that ended before it was seen loses its reservation.

ledger gpu cores=100
reserve gpu a cores=30
reserve gpu b cores=30
commit gpu --ended:a,c
----
cores 30/100; reserved for b

# An earlier leader cannot commit.

ledger gpu cores=100
take-over gpu
commit gpu --epoch:0
----
another replica leads

commit gpu --epoch:1
----
cores 0/100

# A quota that was deleted and created again starts with an empty ledger.

ledger gpu cores=100
take-over gpu first
----
not counted yet

commit gpu a:cores=30
take-over gpu first
----
cores 30/100

take-over gpu second
----
not counted yet

# A pod stored without a reservation is late while there is too little, also after the next count.

ledger gpu cores=100
reserve gpu a cores=60
commit gpu a:cores=60 past:cores=60 --unreserved:a,past
----
cores 120/100; late past; over by cores 20

commit gpu a:cores=60 past:cores=60
----
cores 120/100; late past; over by cores 20

commit gpu past:cores=60
----
cores 60/100

# A charge is exceeded for good only by what is committed; reservations may be released.

ledger gpu cores=100
reserve gpu a cores=60
reserve gpu b cores=50
----
contended: cores wants 50, 60/100 used, 10 missing

commit gpu a:cores=60
reserve gpu b cores=50
----
full: cores wants 50, 60/100 used, 10 missing
