"""Why programs make a system call, in a few words: the reasons that a proposed toolkit begins with."""

from collections.abc import Iterable

_FAMILIES: tuple[tuple[str, str], ...] = (
    ("starts another program", "execve execveat"),
    ("starts a child, or a thread", "clone clone3 fork vfork"),
    ("waits for a child", "wait4 waitid"),
    ("signals a process", "kill tgkill tkill pidfd_send_signal rt_sigqueueinfo"),
    ("joins programs by pipes", "pipe pipe2 tee splice vmsplice"),
    ("passes descriptors on", "dup dup2 dup3"),
    ("groups processes, as shells do", "setpgid setsid getpgid getsid getpgrp"),
    ("opens files", "open openat openat2 creat"),
    ("opens files by handle", "open_by_handle_at name_to_handle_at"),
    ("reads", "read readv pread64 preadv preadv2"),
    ("writes", "write writev pwrite64 pwritev pwritev2"),
    ("closes", "close close_range"),
    ("moves in a file", "lseek"),
    ("looks at files", "stat lstat fstat newfstatat statx access faccessat faccessat2 statfs fstatfs"),
    ("follows links", "readlink readlinkat"),
    ("lists folders", "getdents getdents64"),
    ("knows, and changes, its folder", "getcwd chdir fchdir"),
    ("makes folders", "mkdir mkdirat"),
    ("removes files and folders", "unlink unlinkat rmdir"),
    ("renames", "rename renameat renameat2"),
    ("makes links", "link linkat symlink symlinkat"),
    ("makes pipes and files by name", "mknod mknodat"),
    ("sets modes and owners", "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat umask"),
    ("sets times of files", "utime utimes utimensat futimesat"),
    ("sizes files", "truncate ftruncate fallocate"),
    ("copies between files", "copy_file_range sendfile"),
    ("makes files durable", "fsync fdatasync sync syncfs sync_file_range msync"),
    ("locks, and sets up, descriptors", "fcntl flock ioctl"),
    ("says how it will read", "fadvise64 readahead madvise mincore"),
    ("reads and sets extended attributes",
     "getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr"
     " lremovexattr fremovexattr"),
    ("watches files", "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"),
    ("has memory", "brk mmap munmap mprotect mremap mlock munlock mlock2 membarrier memfd_create"),
    ("guards memory by keys", "pkey_alloc pkey_free pkey_mprotect"),
    ("places memory", "get_mempolicy set_mempolicy mbind"),
    ("shares memory", "shmget shmat shmdt shmctl semget semop semctl semtimedop"),
    ("begins as a thread of the C library",
     "arch_prctl set_tid_address set_robust_list get_robust_list rseq prctl"),
    ("waits for other threads", "futex futex_waitv futex_wait futex_wake sched_yield"),
    ("handles signals",
     "rt_sigaction rt_sigprocmask rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack pause signalfd signalfd4"),
    ("knows the time", "clock_gettime clock_getres gettimeofday time times getitimer"),
    ("waits for a time",
     "nanosleep clock_nanosleep alarm setitimer timer_create timer_settime timer_gettime timer_delete timerfd_create"
     " timerfd_settime timerfd_gettime"),
    ("waits for descriptors",
     "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd"
     " eventfd2"),
    ("has random numbers", "getrandom"),
    ("knows who it is",
     "getpid gettid getppid getuid geteuid getgid getegid getgroups getresuid getresgid capget"),
    ("becomes another user", "setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid"),
    ("changes its powers", "capset"),
    ("knows the machine", "uname sysinfo getcpu sched_getaffinity getrusage getrlimit getpriority"),
    ("asks for its limits", "prlimit64"),
    ("sets its limits", "setrlimit"),
    ("sets its priority",
     "setpriority sched_setaffinity sched_setscheduler sched_getscheduler sched_setparam sched_getparam"
     " sched_get_priority_max sched_get_priority_min ioprio_set ioprio_get"),
    ("opens sockets, without a host local ones alone", "socket"),
    ("joins its own parts by sockets", "socketpair"),
    ("connects", "connect"),
    ("sends", "sendto sendmsg sendmmsg"),
    ("receives", "recvfrom recvmsg recvmmsg"),
    ("sets up, and ends, connections", "setsockopt getsockopt getsockname getpeername shutdown"),
    ("serves connections", "bind listen accept accept4"),
    ("uses the kernel's queues, or falls back", "io_uring_setup io_uring_enter io_uring_register"),
    ("traces other processes", "ptrace process_vm_readv process_vm_writev kcmp"),
    ("makes namespaces", "unshare setns"),
    ("mounts", "mount umount2 pivot_root chroot fsopen fsmount fsconfig move_mount open_tree"),
    ("holds a process by a descriptor", "pidfd_open pidfd_getfd"),
    ("bounds itself", "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"),
    ("asks for a personality", "personality"),
)  # fmt: skip
_REASONS = {name: reason for reason, names in _FAMILIES for name in names.split()}
_ORDER = {name: at for at, name in enumerate(_REASONS)}
UNKNOWN = "was made while it was recorded; say why"


def reason(name: str) -> str:
    """Return why a call is made."""
    return _REASONS.get(name, UNKNOWN)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return calls with those of the same reason beside each other."""
    return tuple(sorted(names, key=lambda name: (_ORDER.get(name, len(_ORDER)), name)))
