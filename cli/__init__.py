"""The command: `halfcard review|inspect|explain|top|doctor|quota|certs|simulate|serve|webhooks|demo|dev`.

- `inputs`: the cluster, manifests and traces that commands read
- `diagnosis`: the checks of `halfcard doctor`
- `quota_commands`: the parts and subcommands of `halfcard quota`
- `demo_scenes`: what `halfcard demo` shows
"""
