"""Questions to a desk elsewhere, answered by a signature that expires."""

from interlock.oracle.webhook.webhook import Webhook, open_webhook

__all__ = ["Webhook", "open_webhook"]
