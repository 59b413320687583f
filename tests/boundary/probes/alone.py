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
import os, sys, time
os.kill(1, int(sys.argv[1]))
time.sleep(0.1)
print('alive', open('/proc/1/stat').read().rpartition(')')[2].split()[0])
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
    for handle, where in ((0, 'stdin'), (os.open('/dev/tty', os.O_RDWR), 'tty'), (os.open('/proc/self/fd/1', os.O_RDWR), 'stdout')):
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
        handle = os.open(path, os.O_RDONLY, dir_fd=0)
        os.listdir(handle) if path == '.' else os.read(handle, 16)
        print(path, 'NOT STOPPED')
    except OSError as error:
        print(path, error.errno)
    try:
        os.close(os.open(path if path != '.' else 'interlock-probe', os.O_WRONLY | (os.O_CREAT if path == '.' else 0), dir_fd=0))
        print(path, 'WRITABLE')
    except OSError as error:
        print(path, error.errno)
"""
