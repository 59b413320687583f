"""What keys and tokens look like: those whose makers gave them a shape that nothing else has.

Source: each maker's own documentation of its tokens, named in `SHAPES`; the table is ours.
"""

import re

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A kind of key. Takes: `pattern`, of all that makes it one; `source`, who says so."""

    name: str
    pattern: str
    source: str


SHAPES = (
    Shape(name="private key", pattern=r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\s+[A-Za-z0-9+/=:]",
          source="RFC 7468, RFC 4716, RFC 9580"),
    Shape(name="JSON web token", pattern=r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}", source="RFC 7519"),
    Shape(name="password in a URL", pattern=r"[a-z][a-z0-9+.-]{1,20}://[^\s:/@'\"<>{}$]{1,64}:[^\s:/@'\"<>{}$]{6,128}@[\w\[]",
          source="RFC 3986, userinfo"),
    Shape(name="AWS access key", pattern=r"(?:AKIA|ASIA)[A-Z2-7]{16}", source="AWS IAM, unique identifiers"),
    Shape(name="AWS secret key", pattern=r"(?i:aws_?secret_?access_?key)[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9/+]{40}",
          source="AWS CLI, credentials file"),
    Shape(name="Azure storage key", pattern=r"AccountKey=[A-Za-z0-9+/]{86}==",
          source="Azure Storage, connection strings"),
    Shape(name="Google API key", pattern=r"AIza[\w-]{35}", source="Google Cloud, API keys"),
    Shape(name="Google client secret", pattern=r"GOCSPX-[\w-]{28}", source="Google Identity, OAuth clients"),
    Shape(name="GitHub token", pattern=r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{60,255}",
          source="GitHub, about authentication: token formats"),
    Shape(name="GitLab token", pattern=r"gl(?:pat|dt|rt|ptt|oas)-[\w.-]{20,}",
          source="GitLab, token overview: prefixes"),
    Shape(name="npm token", pattern=r"npm_[A-Za-z0-9]{36}", source="npm, about access tokens"),
    Shape(name="PyPI token", pattern=r"pypi-AgE[\w-]{50,}", source="PyPI, help: API tokens"),
    Shape(name="crates.io token", pattern=r"cio[A-Za-z0-9]{32}", source="crates.io, token format"),
    Shape(name="Docker token", pattern=r"dckr_(?:pat|oat)_[\w-]{24,}", source="Docker, access tokens"),
    Shape(name="Hugging Face token", pattern=r"hf_[A-Za-z]{34}", source="Hugging Face, user access tokens"),
    Shape(name="OpenAI key", pattern=r"sk-(?:(?:proj|svcacct|admin)-[\w-]{40,}|[A-Za-z0-9]{48})",
          source="OpenAI, API keys"),
    Shape(name="Anthropic key", pattern=r"sk-ant-[a-z0-9]{3,12}-[\w-]{40,}", source="Anthropic, API keys"),
    Shape(name="Slack token", pattern=r"xox[abeoprs]-[A-Za-z0-9-]{20,}|xapp-\d-[A-Za-z0-9-]{20,}",
          source="Slack, token types"),
    Shape(name="Slack webhook", pattern=r"hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}",
          source="Slack, incoming webhooks"),
    Shape(name="Stripe key", pattern=r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}",
          source="Stripe, API keys"),
    Shape(name="SendGrid key", pattern=r"SG\.[\w-]{22}\.[\w-]{43}", source="SendGrid, API keys"),
    Shape(name="Telegram bot token", pattern=r"\d{8,10}:AA[\w-]{33}", source="Telegram, bot API"),
    Shape(name="Vault token", pattern=r"hv[sbr]\.[\w-]{24,}", source="HashiCorp Vault, tokens"),
    Shape(name="DigitalOcean token", pattern=r"do[opr]_v1_[0-9a-f]{64}", source="DigitalOcean, API tokens"),
    Shape(name="Databricks token", pattern=r"dapi[0-9a-f]{32}", source="Databricks, personal access tokens"),
    Shape(name="age key", pattern=r"AGE-SECRET-KEY-1[0-9A-Z]{58}", source="age, file format"),
)  # fmt: skip
_ANY = re.compile("(?<![A-Za-z0-9])(?:" + "|".join(shape.pattern for shape in SHAPES) + ")")
_MADE_UP = re.compile(
    r"(?i)example|x{8}|(?:user|username|name):(?:pass|password|passwd|secret)@|123456789012345|\.\.\."
)
_HINTS = re.compile(
    r"BEGIN|eyJ|://|AKIA|ASIA|(?i:secret)|AccountKey|AIza|GOCSPX|gh[pousr]_|github_pat|gl(?:pat|dt|rt|ptt|oas)-|npm_"
    r"|pypi-|cio|dckr_|hf_|sk-|xox|xapp|hooks\.|sk_|rk_|whsec|SG\.|:AA|hv[sbr]\.|do[opr]_v1|dapi|AGE-"
)
_FEW = 6
"""A key is drawn by chance: one of fewer characters is a place to be filled in."""


def holds_key(text: str) -> bool:
    """Say whether a text holds a key or a token of a known shape, which is none of an example."""
    if _HINTS.search(text) is None:
        return False
    return any(
        len(set(found[0][-24:])) >= _FEW and _MADE_UP.search(found[0]) is None
        for found in _ANY.finditer(text)
    )
