"""The system-call policy of every sandbox as data: what is refused whatever a plan says, and why (x86_64)."""

from enum import Enum

from interlock.model.records import dataclass


class Rule(Enum):
    """What the filter does with a call."""

    DENY = "deny"
    """EPERM."""
    ABSENT = "absent"
    """ENOSYS: callers fall back to an older call, whose arguments the filter can read."""
    CLONE_FLAGS = "clone-flags"
    PERSONALITY = "personality"
    SET_LIMIT = "set-limit"
    LIMIT_OF = "limit-of"
    SOCKET = "socket"
    SOCKET_PAIR = "socket-pair"
    IOCTL = "ioctl"
    NODE_MODE_1 = "node-mode-1"
    NODE_MODE_2 = "node-mode-2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One restricted call.

    Takes: `nested`, whether the rule stays when the command may make sandboxes of its own.
    """

    name: str
    number: int
    rule: Rule
    reason: str
    nested: bool = True


def _family(
    rule: Rule, reason: str, calls: tuple[tuple[str, int], ...], *, nested: bool = True
) -> tuple[Call, ...]:
    return tuple(
        Call(name=name, number=number, rule=rule, reason=reason, nested=nested) for name, number in calls
    )


LAST_KNOWN = 469
"""`file_setattr`, Linux 6.17. A newer call is absent until someone has judged it."""

RESTRICTED: tuple[Call, ...] = (
    *_family(
        Rule.DENY,
        "the view of the file system is the boundary",
        (
            ("mount", 165), ("umount2", 166), ("pivot_root", 155), ("chroot", 161), ("open_tree", 428),
            ("move_mount", 429), ("fsopen", 430), ("fsconfig", 431), ("fsmount", 432), ("fspick", 433),
            ("mount_setattr", 442), ("open_tree_attr", 467),
        ),
        nested=False,
    ),
    *_family(
        Rule.DENY,
        "a new namespace gives capabilities back",
        (("unshare", 272), ("setns", 308)),
        nested=False,
    ),
    *_family(Rule.CLONE_FLAGS, "a new namespace gives capabilities back", (("clone", 56),), nested=False),
    *_family(Rule.ABSENT, "its flags lie in memory, out of sight", (("clone3", 435),), nested=False),
    *_family(Rule.DENY, "the host's names", (("sethostname", 170), ("setdomainname", 171)), nested=False),
    *_family(
        Rule.DENY,
        "reaches into other processes",
        (
            ("ptrace", 101), ("process_vm_readv", 310), ("process_vm_writev", 311), ("kcmp", 312),
            ("pidfd_getfd", 438), ("move_pages", 279), ("migrate_pages", 256),
        ),
    ),
    *_family(
        Rule.DENY,
        "kernel programs and counters see the whole machine",
        (("bpf", 321), ("perf_event_open", 298), ("userfaultfd", 323)),
    ),
    *_family(
        Rule.DENY,
        "keyrings are shared with the host's sessions",
        (("add_key", 248), ("request_key", 249), ("keyctl", 250)),
    ),
    *_family(
        Rule.DENY,
        "its operations pass this filter by",
        (("io_uring_setup", 425), ("io_uring_enter", 426), ("io_uring_register", 427)),
    ),
    *_family(
        Rule.DENY,
        "loads code into the kernel",
        (
            ("create_module", 174), ("init_module", 175), ("delete_module", 176), ("get_kernel_syms", 177),
            ("query_module", 178), ("finit_module", 313), ("kexec_load", 246), ("kexec_file_load", 320),
        ),
    ),
    *_family(
        Rule.DENY,
        "changes the whole machine",
        (
            ("reboot", 169), ("swapon", 167), ("swapoff", 168), ("acct", 163), ("quotactl", 179),
            ("quotactl_fd", 443), ("syslog", 103), ("settimeofday", 164), ("clock_settime", 227),
            ("adjtimex", 159), ("clock_adjtime", 305), ("vhangup", 153), ("iopl", 172), ("ioperm", 173),
        ),
    ),
    *_family(Rule.DENY, "opens files past their path", (("open_by_handle_at", 304),)),
    *_family(
        Rule.DENY,
        "watches, or blocks, other processes' files",
        (("fanotify_init", 300), ("fanotify_mark", 301)),
    ),
    *_family(
        Rule.DENY,
        "old doors that nothing needs",
        (
            ("modify_ldt", 154), ("uselib", 134), ("_sysctl", 156), ("sysfs", 139), ("nfsservctl", 180),
            ("getpmsg", 181), ("putpmsg", 182), ("afs_syscall", 183), ("tuxcall", 184), ("security", 185),
            ("lookup_dcookie", 212), ("vserver", 236),
        ),
    ),
    *_family(
        Rule.PERSONALITY,
        "a personality weakens address randomisation and file checks",
        (("personality", 135),),
    ),
    *_family(
        Rule.SOCKET,
        "odd families leave the network namespace or are rarely tested; raw sockets forge packets",
        (("socket", 41),),
    ),
    *_family(
        Rule.SET_LIMIT,
        "a core limit of other than 1 hands a crash to the host's core-dump program (core(5))",
        (("setrlimit", 160),),
    ),
    *_family(
        Rule.LIMIT_OF,
        "the same; and limits of the sandbox's first process would end the run",
        (("prlimit64", 302),),
    ),
    *_family(Rule.SOCKET_PAIR, "odd families are rarely tested", (("socketpair", 53),)),
    *_family(Rule.IOCTL, "types into, or takes over, the user's terminal", (("ioctl", 16),)),
    *_family(Rule.NODE_MODE_1, "a device file opens the machine", (("mknod", 133),)),
    *_family(Rule.NODE_MODE_2, "a device file opens the machine", (("mknodat", 259),)),
)  # fmt: skip

NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

IP_PROTOCOLS = (0, 6, 17, 1, 58)
"""Any, TCP, UDP, ICMP, ICMPv6: for others (SCTP, DCCP, L2TP) the host's kernel would load a module."""

RLIMIT_CORE = 4
FIRST_PROCESS = 1

PERSONALITIES = (0, 0x40000, 0xFFFFFFFF)
"""PER_LINUX, ADDR_NO_RANDOMIZE (debuggers), and the query."""

TERMINAL_IOCTLS = (0x5412, 0x541C, 0x541D, 0x5423)
"""TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD."""

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
NETLINK_ROUTE = 0
SOCK_RAW, SOCK_PACKET = 3, 10

SOCKET = 41
SET_LIMITS = (160, 302)
"""`setrlimit`, `prlimit64`."""

ALWAYS = ("rt_sigreturn", "exit", "exit_group", "restart_syscall", "close")
"""Without these nothing can end, go on after a signal, or let go of what it has; they reach nothing."""

FALL_BACK = frozenset((327, 328, 332, 316, 435, 436, 437, 439, 441, 452))
"""`preadv2`, `pwritev2`, `statx`, `renameat2`, `clone3`, `close_range`, `openat2`, `faccessat2`, `epoll_pwait2`,
`fchmodat2`: refused as absent, so that the C library takes the older call, which is judged by itself."""
