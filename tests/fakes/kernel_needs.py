"""Needs, written short."""

from interlock.model.toolkits import Access, HostNeed, Limit, LimitNeed, Needs, PathNeed, SystemCallNeed

PROGRAM = (
    "read write close brk mmap munmap mprotect madvise openat fstat newfstatat lseek pread64 access arch_prctl "
    "set_tid_address set_robust_list rseq prlimit64 getrandom ioctl statfs statx futex getcwd getdents64 rt_sigaction "
    "rt_sigprocmask fcntl readlink uname getpid getppid gettid getuid geteuid getgid getegid dup dup2 sysinfo poll "
    "sched_getaffinity sigaltstack clock_gettime pipe2 readlinkat faccessat2"
)
"""What a dynamic program, and Python, ask for at their start."""
START = "execve clone clone3 vfork wait4"
"""What starting another program needs."""
READ = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/dev/null", "/dev/urandom", "/proc")


def needs(
    calls: str = PROGRAM,
    *,
    read: tuple[str, ...] = READ,
    write: tuple[str, ...] = (),
    execute: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    limits: tuple[tuple[Limit, int], ...] = (),
) -> Needs:
    """Return needs. Takes: `hosts`, as `HOST` or `HOST:PORT`."""
    places = ((Access.READ, read), (Access.WRITE, write), (Access.EXECUTE, execute))
    parted = [host.partition(":") for host in hosts]
    return Needs(
        system_calls=tuple(SystemCallNeed(name=name, reason="a test") for name in calls.split()),
        paths=tuple(
            PathNeed(path=path, access=access, reason="a test") for access, paths in places for path in paths
        ),
        hosts=tuple(HostNeed(host=host, port=int(port or 0), reason="a test") for host, _, port in parted),
        limits=tuple(LimitNeed(limit=limit, most=most, reason="a test") for limit, most in limits),
    )
