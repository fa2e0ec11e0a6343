"""Places claims on cards: what is free, what fits, which cards to choose, and the record of the choice.

- `card_usage`: what one pod uses of one card, and what is left of the card
- `demand`: what one pod needs, container by container
- `room`: a node with all that is free on it
- `layouts`: whether a layout exists, and the best one by a policy; `fast_fit` decides for most pods, `search` for the
  others, with what one pod uses of each card so far in `pod_usage`
- `empty_rooms`: whether a pod could be placed at all, without any other pod
- `reasons`: why a node cannot take a demand
- `records`: the annotations in which a choice is written down
- `node_usage`: a node's room from the pods on it
- `node_totals`: what a node offers of each resource as its cards change their mode
"""
