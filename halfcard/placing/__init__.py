"""How claims lie on cards: what is free, what fits, which cards to take, and how it is written down.

- `uses`: what one pod takes of one card, and what is left of the card
- `demand`: what one pod needs, container by container
- `room`: a node with all that is still free on it
- `layouts`: whether a demand can be laid on a node, and the best way by a policy; `glance` answers for most pods,
  `search` for the others, with what one pod `held` of each card so far
- `refusals`: the reasons why a node cannot take a demand
- `records`: the annotation in which a choice is written down; `peers`: the same in other systems' words
- `holding`: a node's room from the pods on it
- `totals`: what a node offers of each resource as its cards change their mode
"""
