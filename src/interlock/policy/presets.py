"""The presets: policies that ship with Interlock, in the same format as a user's.

A version of a preset never changes once released: a ledger names it, and a replay must find the same rules.
`presets_read.py` holds them as already read: `make generate` writes it from `written_out`.
"""

from interlock.policy.preset_network import NETWORK, RULE

CODING_1 = r"""# Preset `coding`, version 1: a coding agent at work in a folder.
version: 1

trusted:
  - task: true                 # the principal's own words; nothing else

sensitive:                     # level `secret` unless another is given
  - place: ".env"
  - place: ".env.*"
    except: ["**/.env.example", "**/.env.sample", "**/.env.template", "**/.env.dist"]
  - place: "*.env"
  - place: ".envrc"
  - place: "*.pem"
  - place: "*.key"
  - place: "*.p12"
  - place: "*.pfx"
  - place: "*.jks"
  - place: "*.keystore"
  - place: "*.kdbx"
  - place: "*.ppk"
  - place: "id_rsa*"
  - place: "id_dsa*"
  - place: "id_ecdsa*"
  - place: "id_ed25519*"
  - place: "credentials"
  - place: "credentials.json"
  - place: "credentials.toml"
  - place: ".credentials*"
  - place: "client_secret*.json"
  - place: "service-account*.json"
  - place: "secrets.*"
  - place: ".netrc"
  - place: ".npmrc"
  - place: ".pypirc"
  - place: ".git-credentials"
  - place: ".pgpass"
  - place: ".htpasswd"
  - place: "auth.json"
  - place: "oauth_creds.json"
  - place: "*.tfstate"
  - place: "*.tfvars"
  - place: ".ssh"
  - place: ".gnupg"
  - place: ".aws"
  - place: ".kube/config"
  - place: ".docker/config.json"

environment:
  pass:
    - PATH
    - HOME
    - USER
    - LOGNAME
    - SHELL
    - LANG
    - LANGUAGE
    - "LC_*"
    - TZ
    - TERM
    - TERM_PROGRAM
    - COLORTERM
    - COLUMNS
    - LINES
    - NO_COLOR
    - FORCE_COLOR
    - CI
    - EDITOR
    - PAGER
    - VIRTUAL_ENV
    - PYTHONUTF8
    - PYTHONDONTWRITEBYTECODE
    - NODE_ENV
    - GOPATH
    - GOFLAGS
    - JAVA_HOME
    - CARGO_HOME
    - RUSTUP_HOME
    - SOURCE_DATE_EPOCH

limits:
  processes: 4096
  open_files: 65536

cedar: |
  @id("coding/no-special-files")
  @reason("devices, FIFOs and sockets do not leave the staged copy")
  @instead("leave it out: a plain file or a temporary folder does the same inside of the run")
  forbid(principal, action, resource)
  when { context.hazards.containsAny(["device", "fifo", "socket"]) };

  @id("coding/staged-files")
  @reason("work in the folders of the run, where every steering value is vouched for")
  permit(principal, action, resource)
  when { context.channel == "file" };
"""

CODING_2 = (
    CODING_1.replace("version 1: a coding agent", "version 2: a coding agent").replace(
        "\ncedar: |\n", f"\n{NETWORK}\ncedar: |\n"
    )
    + RULE
)
"""Version 1 and the network."""

_HOME = """\
home:                          # what people ask agents to change; the rest of HOME is thrown away
  - "~/.bashrc"
  - "~/.bash_profile"
  - "~/.bash_login"
  - "~/.bash_logout"
  - "~/.bash_aliases"
  - "~/.profile"
  - "~/.zshrc"
  - "~/.zprofile"
  - "~/.zshenv"
  - "~/.zlogin"
  - "~/.zlogout"
  - "~/.config/fish/*.fish"    # not fish_variables, which fish writes by itself
  - "~/.config/fish/conf.d/**"
  - "~/.config/fish/functions/**"
  - "~/.config/fish/completions/**"
  - "~/.gitconfig"
  - "~/.gitignore_global"
  - "~/.config/git/**"
  - "~/.vimrc"
  - "~/.config/nvim/**"
  - "~/.tmux.conf"
  - "~/.inputrc"
"""

CODING_3 = (
    CODING_2.replace("version 2: a coding agent", "version 3: a coding agent")
    .replace("\nlimits:\n", f"\n{_HOME}\nlimits:\n")
    .replace("devices, FIFOs and sockets do not", "devices and sockets do not")
    .replace('["device", "fifo", "socket"]', '["device", "socket"]')
)
"""Version 2 with files of HOME that are staged; a FIFO is deferred like other hazards."""

TEXTS: dict[str, str] = {"coding@1": CODING_1, "coding@2": CODING_2, "coding@3": CODING_3}
"""Every preset that was ever released, by name and version."""

CURRENT: dict[str, str] = {"coding": "coding@3"}
"""The version that a bare name means."""


def written_out() -> str:
    """Return the text of `presets_read.py`."""
    from pprint import pformat

    from interlock.policy.document import read_document

    read = {name: read_document(text, filename=name).values for name, text in TEXTS.items()}
    return (
        '"""Generated from presets.py by `make generate`, so that a start reads no YAML."""\n'
        "\n# fmt: off\nfrom typing import Any\n\n"
        f"READ: dict[str, dict[str, Any]] = {pformat(read, width=100, sort_dicts=False)}\n"
    )
