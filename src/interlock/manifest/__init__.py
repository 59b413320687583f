"""The attested manifest: from a plan and toolkits to trajectory, guards and authorised calls; pure.

Signing lies in `evidence.envelopes`; finding toolkits and asking planners in `runtime`.
"""
