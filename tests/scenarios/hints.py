"""The hints of a scenario become a policy: what cannot be read is told, and narrows."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

import yaml
from tests.scenarios.surroundings import Surroundings
from tests.scenarios.wording import HostWord, Word, word_set, words_of

from interlock.boundary import hidden
from interlock.policy.executable_table import TABLE
from interlock.policy.globs import GlobError, check_glob, translate, union

_READS = ("GET", "HEAD", "OPTIONS")
_WRITES = ("POST",)
_METHOD = re.compile(r"GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE|WS")
_READING = re.compile(
    r"\b(?:reads?|reading|fetch|fetching|downloads?|downloading|look|looking|clone|pull|browse|view)\b",
    re.IGNORECASE,
)
_WRITING = re.compile(r"\b(?:push|publish|post|upload|send|submit|write)(?:es|s|ing)?\b", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:no|not|never|nothing|without|but|except)\b[^,;.)]*", re.IGNORECASE)
_ALL = re.compile(r"\b(?:any|all) methods?\b|\bread(?:ing)? and writ(?:e|ing)\b", re.IGNORECASE)
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|SESSION|SIGNATURE")
_SOCKET_NAME = re.compile(r"(?:_SOCK|_SOCKET|_AGENT_PID|_AUTH_SOCK|_HOST)$")
_WRITABLE = re.compile(
    r"\b(?:allowed|may|writable|writeable|writing|write|repository|repo|checkout|workspace)\b", re.IGNORECASE
)
_READ_ONLY = re.compile(r"\bread[- ]only\b|\bnot\b|\bno writ|\bfor reading\b|\bnever\b", re.IGNORECASE)
_TRACKED = re.compile(
    r"\b(?:tracked|versioned|committed)\b.*\bfiles?\b|\bfiles?\b.*\btracked\b", re.IGNORECASE
)
_SIGNS = re.compile(
    r"\bsign(?:s|ed|ing)?\b.*\b(?:commit|commits|tag|tags|git)\b|\b(?:commit|tag)s?\b.*\bsigned\b", re.I
)
_ANSWERS = re.compile(r"\b(?:answers?|responses?|repl(?:y|ies)|pages?|content)\b", re.IGNORECASE)
_TASK = re.compile(r"(?:the )?(?:task|prompt|user)(?:'s)?(?: text| words| prompt)?", re.IGNORECASE)
ORDINARY = sorted(
    word_set(
        "WS OUT NET TMPDIR GIT_AUTHOR_* GIT_COMMITTER_* GIT_TERMINAL_PROMPT "
        "npm_config_registry npm_config_update_notifier npm_config_audit npm_config_fund"
    )
)
"""Variables of a scenario's surroundings that say where things are and who the user is; none is a secret."""


class Hints:
    """A policy in the making."""

    def __init__(self, scenario: dict[str, object], around: Surroundings) -> None:
        hint = scenario.get("policy_hint")
        self._hint: dict[str, object] = hint if isinstance(hint, dict) else {}
        setup = scenario.get("setup")
        variables = setup.get("env", {}) if isinstance(setup, dict) else {}
        self._variables: dict[str, str] = variables if isinstance(variables, dict) else {}
        self.task = str(scenario.get("task", ""))
        self.around = around
        self.unread: list[str] = []
        self.hosts = [found for phrase in self.phrases("allow_hosts") for found in self._hosts(phrase)]
        self.untrusted = self.phrases("untrusted")
        self.forbids: list[str] = []

    def phrases(self, key: str) -> list[str]:
        """Return the phrases of one list."""
        given = self._hint.get(key)
        return [str(phrase) for phrase in given] if isinstance(given, list) else []

    def words(self, phrase: str) -> list[Word]:
        """Read a phrase, with the names of what is there."""
        return words_of(phrase, names=self.around.names)

    def task_paths(self) -> list[str]:
        """Return the paths that the task names."""
        return [word.path for word in self.words(self.task) if word.path]

    def task_hosts(self) -> list[HostWord]:
        """Return the hosts that the task names."""
        return [word.host for word in self.words(self.task) if word.host]

    def _hosts(self, phrase: str) -> list[tuple[HostWord, tuple[str, ...] | None]]:
        """Read `host/path (GET)`; the methods are None where the phrase gives none."""
        head, bracket, tail = phrase.partition("(")
        found = [word.host for word in self.words(head) if word.host]
        if not found:
            self._unread("allow_hosts", phrase, "no host in it, nothing is allowed by it")
        said = (bracket + tail) or " ".join(word.text for word in self.words(head) if not word.host)
        denied = _DENIED.search(said) is not None
        said = _DENIED.sub(" ", said)
        methods: tuple[str, ...] | None = tuple(_METHOD.findall(said)) or None
        if methods is None and _ALL.search(said) and not denied:
            methods = ("*",)
        elif methods is None and _WRITING.search(said) and not denied:
            methods = (*_READS, *_WRITES)
        elif methods is None and (denied or _READING.search(said)):
            methods = _READS
        elif methods is None and said.strip(" ()"):
            self._unread("allow_hosts", phrase, "its remark says nothing of methods")
        if methods and "GET" in methods:
            methods = tuple(dict.fromkeys((*methods, *_READS)))
        return [(host, methods) for host in found]

    def _unread(self, key: str, phrase: str, what: str) -> None:
        self.unread.append(f"{key}: `{phrase}`: {what}")

    def policy(self) -> str:
        """Return the policy file."""
        trusted = self._trusted()
        values: dict[str, object] = {"version": 1, "preset": "coding", "trusted": trusted}
        untrusted = self._narrowing("untrusted")
        if untrusted:
            values["untrusted"] = [{"file": glob} for glob in untrusted]
        hide, expose = self._sensitive(values), self._exposed()
        environment, secrets = self._environment()
        values["environment"] = environment
        hide += [path for path in self._beside(expose) if path not in hide]
        if sandbox := {key: paths for key, paths in (("hide", hide), ("expose", expose)) if paths}:
            values["sandbox"] = sandbox
        if home := self._home():
            values["home"] = home
        if folders := self._folders():
            values["folders"] = folders
        if any(_SIGNS.search(phrase) for phrase in self.phrases("trusted")):
            values["sign"] = ["git"]
        values["network"] = self._network(secrets)
        text = yaml.dump(values, Dumper=_NoAliases, sort_keys=False, allow_unicode=True, width=1000)
        if self.forbids:
            text += "cedar: |\n" + "".join(f"  {line}\n" for line in self.forbids)
        return text

    # --- what may name things -----------------------------------------------------------------------------------

    def _trusted(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        phrases = self.phrases("trusted")
        if any(_TASK.fullmatch(phrase.strip()) for phrase in phrases):
            found.append({"task": True})
        else:
            found.append({"task": False})
        unreadable = [phrase for phrase in self.untrusted if not self._readable(phrase)]
        for phrase in unreadable:
            self._unread(
                "untrusted", phrase, "no place in it, so files are trusted only where they are named"
            )
        for phrase in phrases:
            if _TASK.fullmatch(phrase.strip()) or _SIGNS.search(phrase):
                continue
            if _TRACKED.search(phrase):
                if not unreadable:
                    found += [{"file": path} for path in self.around.tracked if _plain(path)]
                continue
            path = self._whole(phrase)
            if path and (glob := self._glob(path)) and (self.around.inside(path)):
                found.append({"file": glob})
            elif not self._folder_of(phrase) and not self._answering(phrase):
                self._unread("trusted", phrase, "nothing is trusted by it")
        return list({str(entry): entry for entry in found}.values())

    def _whole(self, phrase: str) -> str:
        """Return the path that a phrase is as a whole, but for words in brackets behind it."""
        head = phrase.partition("(")[0].strip()
        words = self.words(head)
        return words[0].path if len(words) == 1 else ""

    def _readable(self, phrase: str) -> bool:
        return any(word.path or word.host for word in self.words(phrase))

    def _glob(self, path: str) -> str:
        glob = self.around.inside(path).removeprefix("./")
        if glob.endswith("/"):
            glob += "**"
        try:
            check_glob(glob)
        except GlobError:
            return ""
        return glob

    def _narrowing(self, key: str) -> list[str]:
        """Return the globs below the workspace that stand anywhere in the phrases of a list that narrows."""
        found: list[str] = []
        for phrase in self.phrases(key):
            for word in self.words(phrase):
                if word.path and (glob := self._glob(word.path)):
                    found.append(glob)
        return list(dict.fromkeys(found))

    def _answering(self, phrase: str) -> list[HostWord]:
        """Return the hosts whose answers a phrase trusts."""
        return [word.host for word in self.words(phrase) if word.host] if _ANSWERS.search(phrase) else []

    # --- what is kept ---------------------------------------------------------------------------------------------

    def _sensitive(self, values: dict[str, object]) -> list[str]:
        """Put levels into `values` and return what is hidden: what lies outside and the task does not name."""
        hide: list[str] = []
        named = {self.around.absolute(path).rstrip("/") for path in self.task_paths()}
        folders = set(self._folders())
        levels: list[dict[str, str]] = []
        for phrase in self.phrases("sensitive"):
            words = self.words(phrase)
            if not any(word.path or word.host or word.variable for word in words):
                self._unread("sensitive", phrase, "left to what the product does by itself")
            for word in words:
                if word.host:
                    self._forbid_host(word.host)
                elif word.path and (glob := self._glob(word.path)):
                    # A place that runs is guarded as one: its content is no secret.
                    if not is_executable_place(glob):
                        levels.append({"place": glob, "level": "secret"})
                elif word.path:
                    path = re.sub(r"(?:/\*+)+$", "", self.around.absolute(word.path)).rstrip("/")
                    inside_of = any(path == folder or path.startswith(folder + "/") for folder in folders)
                    if (
                        not path.startswith("/")
                        or "*" in path
                        or inside_of
                        or path in self.around.places.values()
                    ):
                        continue
                    if path not in named:
                        hide.append(self.around.home(path) or path)
        if levels:
            values["sensitive"] = levels
        return list(dict.fromkeys(hide))

    def _forbid_host(self, host: HostWord) -> None:
        port = f" && context.port == {host.port}" if host.port else ""
        number = len(self.forbids) + 1
        self.forbids += [
            f'@id("kept-host-{number}")',
            '@reason("the principal keeps this host to themselves")',
            f'forbid(principal, action, resource) when {{ context.channel == "net" && context.host == "{host.host}"'
            f"{port} }};",
        ]

    def _keep_to(self, port: int, methods: tuple[str, ...] | None) -> None:
        """Have the policy refuse what a published port is not open for: publishing vouches for every method."""
        if methods is None or "*" in methods:
            return
        listed = ", ".join(f'"{method}"' for method in methods)
        self.forbids += [
            f'@id("kept-port-{len(self.forbids) + 1}")',
            '@reason("the principal opens this port for some methods alone")',
            f'forbid(principal, action, resource) when {{ context.channel == "net" && context.published && '
            f"context.port == {port} && ![{listed}].contains(context.method) }};",
        ]

    def forbid_files(self, paths: Iterable[str]) -> None:
        """Have the policy refuse new files: what is plain data below the workspace is never asked about."""
        for path in paths:
            number = len(self.forbids) + 1
            like = path.replace("\\", "\\\\").replace('"', '\\"')
            self.forbids += [
                f'@id("unwanted-{number}")',
                '@reason("the principal does not want this file")',
                'forbid(principal, action, resource) when { context.channel == "file" && '
                f'(context.path == "{like}" || context.path like "*/{like}" || context.path like "{like}/*") }};',
            ]

    def forbid_home(self, paths: Iterable[str]) -> None:
        """Have the policy refuse changes of places in HOME, though the task may name them."""
        for path in paths:
            like = path.replace("\\", "\\\\").replace('"', '\\"')
            self.forbids += [
                f'@id("unwanted-{len(self.forbids) + 1}")',
                '@reason("the principal does not want this change")',
                'forbid(principal, action, resource) when { context.channel == "file" && context.root == "home" && '
                f'(context.path == "{like}" || context.path like "{like}/*") }};',
            ]

    def forbid_push(self) -> None:
        """Have the policy refuse every push: hosts that are allowed are not asked about."""
        self.forbids += [
            '@id("no-push")',
            '@reason("the principal wants no push")',
            'forbid(principal, action, resource) when { context.channel == "net" && '
            '(context.path like "*/git-receive-pack" || context.query like "*git-receive-pack*") };',
        ]

    def forbid_words(self, nouns: Iterable[str]) -> None:
        """Have the policy refuse new files whose own name holds a word: `the report` may be `REPORT.md`."""
        for noun in nouns:
            likes = " || ".join(
                f'context.name like "*{one}*"' for one in (noun, noun.capitalize(), noun.upper())
            )
            self.forbids += [
                f'@id("unwanted-{len(self.forbids) + 1}")',
                '@reason("the principal does not want this file")',
                'forbid(principal, action, resource) when { context.channel == "file" && '
                f'context.before == "none" && ({likes}) }};',
            ]

    def forbid_all(self) -> None:
        """Have the policy refuse every change: a session that is called off leaves nothing."""
        self.forbids += [
            '@id("called-off")',
            '@reason("the principal called the whole session off")',
            'forbid(principal, action, resource) when { context.channel == "file" };',
        ]

    def forbid_hazards(self) -> None:
        """Have the policy refuse what reaches out of the workspace or gains rights."""
        self.forbids += [
            '@id("untrusted-hazards")',
            '@reason("untrusted words were in play: no links out, no set-id bits")',
            'forbid(principal, action, resource) when { context.channel == "file" && '
            'context.hazards.containsAny(["outward-link", "set-id", "file-capability"]) };',
        ]

    # --- what the command sees and reaches --------------------------------------------------------------------------

    def _environment(self) -> tuple[dict[str, object], list[dict[str, object]]]:
        kept = {word.variable for phrase in self.phrases("sensitive") for word in self.words(phrase)}
        text = " ".join(self.phrases("sensitive"))
        passed = list(ORDINARY)
        secrets: list[dict[str, object]] = []
        hosts = sorted({host.host for host, _ in self.hosts if not _loopback(host.host)})
        # An allow list that names a host without `https` has any way of reaching it.
        plain = all(host.scheme != "https" for host, _ in self.hosts)
        for name in self._variables:
            if name in kept or re.search(rf"\b{re.escape(name)}\b", text) or _SOCKET_NAME.search(name):
                continue
            if not _SECRET_NAME.search(name.upper()):
                passed.append(name)
            elif hosts:
                secrets.append(
                    {"name": name.lower(), "hosts": hosts, "from": name, "as": name, "plain_http": plain}
                )
            else:
                self._unread("env", name, "looks like a secret, and no host is allowed: not passed")
        return {"pass": passed}, secrets

    def _network(self, secrets: list[dict[str, object]]) -> dict[str, object]:
        keyed = {host for secret in secrets for host in _texts(secret["hosts"])}
        answering = {host.host for phrase in self.phrases("trusted") for host in self._answering(phrase)}
        entries: list[dict[str, object]] = []
        publish: list[dict[str, object]] = []
        for host, said in self.hosts:
            if _loopback(host.host):
                if host.port:
                    publish.append({"port": host.port, "to": f"127.0.0.1:{host.port}"})
                    self._keep_to(host.port, said)
                continue
            methods = said or _READS
            if said is None and (host.host in keyed or host.path.strip("/*")):
                # The user's own account, or one part of a host: that is where the user works.
                methods = (*_READS, *_WRITES)
            entry: dict[str, object] = {"host": host.host, "methods": list(methods)}
            if path := re.sub(r"\*+$", "", host.path):
                entry["paths"] = [path]
            trusted = host.host in answering
            if trusted:
                entry["trusted"] = True
            ports = [host.port] if host.port else [80, 443] if trusted else [0]
            entries += [{**entry, "port": port} if port else entry for port in ports]
        # The name server of a scenario answers with an address of this machine for every name.
        found: dict[str, object] = {"hosts": entries, "local_names": ["*"]}
        if secrets:
            found["secrets"] = secrets
        if publish:
            found["publish"] = publish
        return found

    # --- what else may be written ---------------------------------------------------------------------------------

    def _home(self) -> list[str]:
        """Return the places of HOME that the task names, in its own words."""
        found: list[str] = []
        for path in self.task_paths():
            place = self.around.home(path)
            inside = self.around.inside(path)
            if (
                not place
                and inside.startswith(".")
                and "/" not in inside
                and not self.around.exists("$WS/" + inside)
            ):
                place = self.around.home("~/" + inside) if self.around.exists("~/" + inside) else ""
            # `~/.*` would be all of HOME.
            if not place or not re.search(r"\w", place.removeprefix("~/")) or place.startswith("~/*"):
                continue
            place = place.rstrip("/")
            found.append(place)
            if self.around.is_folder(place):
                found.append(place + "/**")
        return list(dict.fromkeys(found))

    def _exposed(self) -> list[str]:
        """Return what of HOME the product hides by itself though the task names it or a place in it."""
        found: list[str] = []
        for place in self._home():
            parts = place.removesuffix("/**").split("/")
            above = ["/".join(parts[:number]) for number in range(2, len(parts) + 1)]
            found += [
                path for path in above if any(fnmatchcase(path, entry.path) for entry in hidden.DEFAULT)
            ]
        return list(dict.fromkeys(found))

    def _beside(self, expose: list[str]) -> list[str]:
        """Return what lies beside the named places in the exposed folders: it stays hidden."""
        named = [place.removesuffix("/**") for place in self._home()]
        found: list[str] = []
        folders = [path for path in expose if path not in named]
        for folder in folders:
            for name in self.around.entries(folder):
                path = f"{folder}/{name}"
                if any(place.startswith(path + "/") for place in named):
                    folders.append(path)
                elif path not in named:
                    found.append(path)
        return found

    def _folder_of(self, phrase: str) -> str:
        if not _WRITABLE.search(phrase) or _READ_ONLY.search(phrase):
            return ""
        words = self.words(phrase)
        paths = [word.path for word in words if word.path]
        if len(paths) != 1 or not words[0].path:
            return ""
        whole = self.around.absolute(paths[0]).rstrip("/*")
        outer = list(self.around.places.values())
        if (
            not whole.startswith("/")
            or self.around.inside(paths[0])
            or any((f + "/").startswith(whole + "/") for f in outer)
        ):
            return ""
        return whole

    def _folders(self) -> list[str]:
        found = [folder for phrase in self.phrases("trusted") if (folder := self._folder_of(phrase))]
        return list(dict.fromkeys(found))


def _plain(path: str) -> bool:
    """Say whether a tracked file can be written as a glob of itself alone."""
    try:
        check_glob(path)
    except GlobError:
        return False
    return not re.search(r"[*?\[\]\\]", path)


def _loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def is_executable_place(glob: str) -> bool:
    """Say whether the places of a glob run or steer what runs, by the product's own table."""
    return _executable().fullmatch(re.sub(r"\*+", "x", glob).casefold()) is not None


@lru_cache(maxsize=1)
def _executable() -> re.Pattern[str]:
    # Some are both: what steers a tool may hold its keys as well.
    both = ("package-manager", "program-config")
    globs = (glob.casefold() for entry in TABLE if entry.kind not in both for glob in entry.globs)
    return union(("(?:.*/)?" + translate(glob) for glob in globs), ignore_case=False)


class _NoAliases(yaml.SafeDumper):
    """The policy's reader takes no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Write every value out."""
        return True
