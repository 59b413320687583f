"""Attacks that need a sandbox of their own, as programs for the sandbox's Python: they end it, or outlive it."""

FORK_BOMB = """
import os, signal
made = []
try:
    while len(made) < 100:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        made.append(pid)
    print('not stopped')
except OSError as error:
    print('stopped', error.errno)
print(len(made))
"""
"""Stops by itself at 100: a bomb that nothing stops must not take the test's machine with it."""

HUGE_FILE = """
import errno, os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
SIZE = 64 << 20
def write(f): os.lseek(f, SIZE, 0); os.write(f, b'x')
def spread(f): os.ftruncate(f, SIZE)
def reserve(f): os.posix_fallocate(f, 0, SIZE)
def splice(f):
    r, w = os.pipe(); os.write(w, b'x'); os.lseek(f, SIZE, 0); os.splice(r, f, 1)
def copy(f):
    g = os.open('small', os.O_RDWR | os.O_CREAT); os.write(g, b'x'); os.copy_file_range(g, f, 1, 0, SIZE)
for grow in (write, spread, reserve, splice, copy):
    f = os.open(grow.__name__, os.O_RDWR | os.O_CREAT)
    try:
        grow(f)
        print(grow.__name__, 'not stopped')
    except OSError as error:
        print(grow.__name__, errno.errorcode[error.errno])
"""

FILL = """
import errno, sys
for folder in ('/tmp', '/var/tmp', '/dev/shm', '/run'):
    try:
        with open(folder + '/fill', 'wb') as f:
            for _ in range(48):
                f.write(bytes(1 << 20))
        print(folder, 'not stopped')
    except OSError as error:
        print(folder, errno.errorcode[error.errno])
"""

DAEMONS = """
import os, signal, sys, time
word = sys.argv[1]
def stay(kind):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    for fd in (0, 1, 2):
        os.dup2(os.open('/dev/null', os.O_RDWR), fd)
    os.execv('/bin/sh', ['sh', '-c', 'while :; do sleep 1; done', word, kind])
def child(prepare, kind):
    if os.fork() == 0:
        try:
            prepare()
            stay(kind)
        finally:
            os._exit(1)
def twice():
    os.setsid()
    if os.fork():
        os._exit(0)
def halted():
    pid = os.fork()
    if pid:
        time.sleep(0.05); os.kill(pid, signal.SIGSTOP); os._exit(0)
def many():
    for _ in range(5):
        os.fork()
child(os.setsid, 'session')
child(lambda: os.setpgid(0, 0), 'group')
child(twice, 'orphan')
child(halted, 'halted')
child(many, 'many')
time.sleep(0.3)
print('started', flush=True)
if len(sys.argv) > 2:
    time.sleep(60)
"""

CRASH = """
import os, resource, signal
try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
except (OSError, ValueError):
    pass
os.kill(os.getpid(), signal.SIGSEGV)
"""

STARVE_FIRST = """
import os, resource, time
resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))
end = time.time() + 5
while time.time() < end:
    pid = os.fork()
    if pid == 0:
        os._exit(0 if os.fork() else 0)
    os.waitpid(pid, 0)
print('alive')
"""

SIGNAL_FIRST = """
import os, signal, time
for number in range(1, signal.NSIG):
    if number in (32, 33):
        continue
    print('sent', number, flush=True)
    try:
        os.kill(1, number)
    except PermissionError:
        pass
    time.sleep(0.004)
    state = open('/proc/1/stat').read().rpartition(')')[2].split()[0]
    if state != 'S':
        time.sleep(0.05)
        state = open('/proc/1/stat').read().rpartition(')')[2].split()[0]
    print(state, flush=True)
print('END')
"""

FLOOD = """
import os
for i in range(6000):
    f = os.open(f'f{i}', os.O_CREAT | os.O_WRONLY)
    os.write(f, b'x')
    os.close(f)
    if i % 3 == 0:
        os.rename(f'f{i}', f'g{i}')
    elif i % 3 == 1:
        os.unlink(f'f{i}')
"""

RACE = """
import os, threading
stop = False
def turn():
    while not stop:
        os.rename('a', 'b'); os.rename('b', 'a')
t = threading.Thread(target=turn); t.start()
for i in range(300):
    for name in ('a', 'b'):
        try:
            open(f'{name}/secret').read()
            break
        except OSError:
            pass
    try:
        os.mkdir('x'); os.mkdir('x/y')
        with open('x/y/f', 'w') as f: f.write('x')
        os.rename('x', f'z{i}')
    except OSError:
        pass
stop = True
t.join()
open('done', 'w').close()
"""

TYPE_IN = """
import fcntl, os
def tried(name, request, value):
    for handle, where in ((0, 'stdin'), (os.open('/dev/tty', os.O_RDWR), 'tty')):
        try:
            fcntl.ioctl(handle, request, value)
            print(name, where, 'NOT STOPPED')
        except OSError as error:
            print(name, where, 'errno', error.errno)
tried('TIOCSTI', 0x5412, b'x')
tried('TIOCLINUX', 0x541C, bytes((6,)))
tried('TIOCSETD', 0x5423, bytes(8))
tried('TIOCCONS', 0x541D, bytes(8))
print('END')
"""

FOLDER_AS_INPUT = """
import os
for path in ('etc/passwd', 'etc/shadow', 'usr/bin/env', '.'):
    try:
        handle = os.open(path, os.O_RDONLY, dir_fd=7)
        os.listdir(handle) if path == '.' else os.read(handle, 16)
        print(path, 'NOT STOPPED')
    except OSError as error:
        print(path, error.errno)
    try:
        os.close(os.open(path if path != '.' else 'interlock-probe', os.O_WRONLY | (os.O_CREAT if path == '.' else 0), dir_fd=7))
        print(path, 'WRITABLE')
    except OSError as error:
        print(path, error.errno)
"""

UNCOVER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    values = [one if isinstance(one, bytes) or one is None else ctypes.c_long(one) for one in arguments]
    return libc.syscall(ctypes.c_long(number), *values)
home, hidden = sys.argv[1:3]
uid, gid = os.getuid(), os.getgid()
print('stood', call(272, 0x10000000 | 0x20000 | 0x20000000 | 0x40000000), flush=True)
for name, text in (('setgroups', 'deny'), ('uid_map', f'0 {uid} 1'), ('gid_map', f'0 {gid} 1')):
    try:
        with open(f'/proc/self/{name}', 'w') as file:
            file.write(text)
    except PermissionError:
        pass  # without its ids mapped it has the capabilities all the same
if os.fork():
    os.wait()
    sys.exit()
for name in ('e', 'm'):
    os.mkdir(f'/tmp/{name}')
def look(how):
    for name in (hidden, 'etc/shadow', 'shadow'):
        try:
            with open('/tmp/m/' + name) as file:
                if file.read(1):
                    print(how, name, 'REVEALED')
        except OSError:
            pass
    call(166, b'/tmp/m', 2)
for low in (home, '/', '/etc'):
    call(165, b'x', b'/tmp/m', b'overlay', 0, f'lowerdir={low}:/tmp/e'.encode())
    look('overlay')
    call(165, low.encode(), b'/tmp/m', None, 4096, None)
    look('bind')
    call(165, low.encode(), b'/tmp/m', None, 4096 | 16384, None)
    call(166, f'/tmp/m/{hidden}'.encode(), 2)
    call(166, f'/tmp/m/{os.path.dirname(hidden)}'.encode(), 2)
    look('recursive bind')
if call(165, b'proc', b'/tmp/m', b'proc', 0, None) == 0:
    print('a second proc REVEALED')
if call(165, b'sysfs', b'/tmp/m', b'sysfs', 0, None) == 0:
    print('a second sysfs REVEALED')
if call(165, b'none', b'/etc', None, 32 | 4096, None) == 0:
    print('the etc folder writable REVEALED')
print('END')
"""
