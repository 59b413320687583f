"""What a command never sees unless the policy exposes it: the default list, as data."""

import os

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """One hidden path, or a family of them.

    Takes: `path`, absolute or below `~/`; a `*` in its last component stands for any text.
    """

    path: str
    reason: str


def _family(reason: str, *paths: str) -> tuple[Hidden, ...]:
    return tuple(Hidden(path=path, reason=reason) for path in paths)


OF_AGENTS = "credentials and history of agents"
"""The reason of what an agent's own profile may show to it again."""

DEFAULT: tuple[Hidden, ...] = (
    *_family("keys that log in to other machines", "~/.ssh", "~/.putty", "~/.config/mosh"),
    *_family(
        "signing and decryption keys",
        "~/.gnupg",
        "~/.config/sops",
        "~/.config/age",
        "~/.minisign",
        "~/.sigstore",
    ),
    *_family(
        "cloud credentials",
        "~/.aws",
        "~/.azure",
        "~/.config/gcloud",
        "~/.config/doctl",
        "~/.config/hcloud",
        "~/.config/rclone",
        "~/.boto",
        "~/.s3cfg",
        "~/.oci",
        "~/.fly",
        "~/.config/heroku",
        "~/.local/share/heroku",
        "~/.wrangler",
        "~/.config/.wrangler",
        "~/.vercel",
        "~/.local/share/com.vercel.cli",
        "~/.netlify",
        "~/.terraform.d",
        "~/.terraformrc",
        "~/.pulumi",
        "~/.vault-token",
        "~/.databrickscfg",
        "~/.snowflake",
        "~/.snowsql",
    ),
    *_family(
        "cluster and registry credentials",
        "~/.kube",
        "~/.docker/config.json",
        "~/.config/containers/auth.json",
        "~/.config/helm",
        "~/.rancher",
        "~/.minikube",
        "~/.talos",
    ),
    *_family(
        "passwords and tokens of tools",
        "~/.netrc",
        "~/_netrc",
        "~/.git-credentials",
        "~/.config/git/credentials",
        "~/.npmrc",
        "~/.yarnrc",
        "~/.yarnrc.yml",
        "~/.pypirc",
        "~/.config/gh",
        "~/.config/hub",
        "~/.config/glab-cli",
        "~/.cargo/credentials*",
        "~/.gem/credentials",
        "~/.m2/settings*.xml",
        "~/.gradle/gradle.properties",
        "~/.composer/auth.json",
        "~/.config/composer/auth.json",
        "~/.nuget/NuGet",
        "~/.hex",
        "~/.pgpass",
        "~/.my.cnf",
        "~/.mylogin.cnf",
        "~/.config/op",
        "~/.subversion/auth",
        "~/.fetchmailrc",
        "~/.msmtprc",
        "~/.smbcredentials",
        "~/.huggingface/token",
        "~/.cache/huggingface/token",
        "~/.kaggle",
        "~/.config/wandb",
        "~/.twurlrc",
    ),
    *_family(
        OF_AGENTS,
        "~/.claude/.credentials.json",
        "~/.claude.json",
        "~/.claude/history.jsonl",
        "~/.codex/auth.json",
        "~/.codex/history.jsonl",
        "~/.gemini/oauth_creds.json",
        "~/.gemini/google_accounts.json",
        "~/.qwen/oauth_creds.json",
        "~/.local/share/opencode/auth.json",
        "~/.config/github-copilot",
        "~/.pi/agent/auth.json",
        "~/.aider.conf.yml",
        "~/.continue/config.*",
        "~/.cursor/auth.json",
        "~/.config/io.datasette.llm/keys.json",
        "~/.openai",
        "~/.anthropic",
    ),
    *_family(
        "keyrings and password stores",
        "~/.local/share/keyrings",
        "~/.kde/share/apps/kwallet",
        "~/.local/share/kwalletd",
        "~/.password-store",
        "~/.local/share/pass",
        "~/.config/Bitwarden*",
        "~/.config/1Password",
        "~/.config/keepassxc",
        "~/.lastpass",
        "~/.pki",
        "~/.config/pulse/cookie",
        "~/.Xauthority",
        "~/.ICEauthority",
    ),
    *_family(
        "browser profiles: cookies and saved passwords",
        "~/.mozilla",
        "~/.config/google-chrome*",
        "~/.config/chromium",
        "~/.config/BraveSoftware",
        "~/.config/vivaldi",
        "~/.config/microsoft-edge*",
        "~/.config/opera*",
        "~/.librewolf",
        "~/.thunderbird",
        "~/.config/Slack",
        "~/.config/discord",
        "~/.config/Signal",
        "~/.local/share/TelegramDesktop",
        "~/snap",
        "~/.var/app",
    ),
    *_family(
        "what was typed before",
        "~/.bash_history",
        "~/.zsh_history",
        "~/.zhistory",
        "~/.histfile",
        "~/.history",
        "~/.local/share/fish/fish_history",
        "~/.python_history",
        "~/.node_repl_history",
        "~/.psql_history",
        "~/.mysql_history",
        "~/.sqlite_history",
        "~/.rediscli_history",
        "~/.lesshst",
        "~/.viminfo",
        "~/.local/share/atuin",
    ),
    *_family(
        "crypto wallets",
        "~/.bitcoin",
        "~/.ethereum",
        "~/.electrum",
        "~/.monero",
        "~/.config/solana",
        "~/.config/Exodus",
        "~/.config/Ledger*",
    ),
    *_family(
        "what Interlock itself keeps",
        "~/.local/state/interlock",
        "~/.config/interlock/keys",
        "~/.local/share/interlock",
    ),
    *_family("other users", "/root", "/home/*", "/lost+found"),
    *_family(
        "the system's secrets",
        "/etc/shadow*",
        "/etc/gshadow*",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/ssh/ssh_host_*_key",
        "/etc/ssl/private",
        "/etc/pki/tls/private",
        "/etc/letsencrypt",
        "/etc/security/opasswd",
        "/etc/krb5.keytab",
        "/etc/wireguard",
        "/etc/openvpn",
        "/etc/NetworkManager/system-connections",
        "/etc/kubernetes",
        "/etc/rancher",
        "/etc/cni",
        "/etc/ppp/*-secrets",
        "/etc/sssd",
        "/etc/docker",
        "/etc/vault.d",
    ),
    *_family(
        "data of services",
        "/var/lib/docker",
        "/var/lib/containerd",
        "/var/lib/containers",
        "/var/lib/kubelet",
        "/var/lib/etcd",
        "/var/lib/rancher",
        "/var/lib/mysql*",
        "/var/lib/mariadb",
        "/var/lib/postgresql",
        "/var/lib/redis",
        "/var/lib/mongodb",
        "/var/lib/elasticsearch",
        "/var/lib/rabbitmq",
        "/var/lib/private",
        "/var/lib/sss",
        "/var/lib/NetworkManager",
        "/var/lib/bluetooth",
        "/var/lib/systemd",
        "/var/lib/samba",
        "/var/lib/cloud",
        "/var/lib/libvirt",
        "/var/lib/lxd",
        "/var/lib/incus",
        "/var/lib/snapd",
        "/var/snap",
        "/var/lib/sudo",
    ),
    *_family(
        "logs, mail and copies", "/var/log", "/var/spool", "/var/mail", "/var/backups", "/var/crash", "/boot"
    ),
)


def expand(entries: tuple[str, ...], home: str) -> tuple[str, ...]:
    """Return the paths of these entries that exist on the host, as written, in order."""
    found: list[str] = []
    for entry in entries:
        path = home.rstrip("/") + entry[1:] if entry.startswith("~/") else entry
        if "*" not in path:
            if os.path.lexists(path):
                found.append(path)
            continue
        folder, pattern = os.path.split(path)
        start, _, end = pattern.partition("*")
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            # What this user cannot list, the command cannot list either.
            continue
        found.extend(
            f"{folder}/{name}"
            for name in names
            if len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)
        )
    return tuple(found)
