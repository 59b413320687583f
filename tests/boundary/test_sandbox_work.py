"""What agents do all day must work on the staged copy."""

import shutil

import pytest
from tests.boundary.conftest import Box

GIT = (
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x;"
    "git init -q . && echo x > f && git add f && git commit -q -m one && echo y >> f && git commit -q -am two &&"
    "git gc -q && git log --format=%s && git status --porcelain"
)


def test_work_git_commits(box: Box) -> None:
    if not shutil.which("git"):
        pytest.skip("not run: no git")
    done = box.sh(GIT)
    assert (done.code, done.text) == (0, "two\none\n"), done.err


def test_work_sqlite_write_ahead_log_and_locks(box: Box) -> None:
    done = box.py(
        "import sqlite3,fcntl,os\n"
        "d=sqlite3.connect('d.db'); print(d.execute('pragma journal_mode=wal').fetchone()[0])\n"
        "d.execute('create table t(a)'); d.executemany('insert into t values(?)',[(i,) for i in range(1000)]); d.commit()\n"
        "e=sqlite3.connect('d.db'); print(e.execute('select sum(a) from t').fetchone()[0])\n"
        "f=open('l','w'); fcntl.flock(f,fcntl.LOCK_EX); g=open('l')\n"
        "try: fcntl.flock(g,fcntl.LOCK_EX|fcntl.LOCK_NB)\nexcept BlockingIOError: print('locked')\n"
    )
    assert (done.code, done.text) == (0, "wal\n499500\nlocked\n"), done.err


def test_work_inotify_sees_changes(box: Box) -> None:
    box.file("f", "x")
    done = box.py(
        "import ctypes,os,struct\n"
        "c=ctypes.CDLL(None); n=c.inotify_init1(0); c.inotify_add_watch(n,b'.',0x102)\n"
        "open('f','a').write('y'); open('g','w').close()\n"
        "d=os.read(n,4096); print(len(d)>=32)\n"
    )
    assert (done.code, done.text) == (0, "True\n"), done.err


def test_work_links_sparse_files_and_directory_renames(box: Box) -> None:
    box.file("d/sub/f", "x")
    box.file("h", "linked")
    done = box.py(
        "import os,subprocess\n"
        "os.link('h','h2'); print(os.stat('h').st_nlink, open('h2').read())\n"
        "f=os.open('s',os.O_CREAT|os.O_RDWR); os.ftruncate(f,1<<30); os.pwrite(f,b'e',1<<29); print(os.fstat(f).st_blocks<5000)\n"
        "print(subprocess.call(['mv','d','e']), open('e/sub/f').read(), os.path.exists('d'))\n"
        "os.symlink('e/sub/f','ln'); print(open('ln').read()); os.mkfifo('p')\n"
        "subprocess.check_call(['rm','-rf','e']); os.mkdir('d'); print(os.listdir('d'))\n"
    )
    assert (done.code, done.text) == (0, "2 linked\nTrue\n0 x False\nx\n[]\n"), done.err


def test_work_directory_renames_in_place_as_root(box: Box) -> None:
    box.file("d/f", "x")
    done = box.py(
        "import os\ntry: os.rename('d','e'); print('renamed')\nexcept OSError as e: print(e.errno)\n"
    )
    # An ordinary user's overlay cannot redirect folders; tools copy instead (EXDEV).
    assert done.text == ("renamed\n" if box.root else "18\n")


def test_work_unix_sockets_of_its_own(box: Box) -> None:
    done = box.py(
        "import socket,os\n"
        "for p in ('s','/tmp/s','@'.replace('@',chr(0))+'abstract'):\n"
        " l=socket.socket(socket.AF_UNIX); l.bind(p); l.listen(); c=socket.socket(socket.AF_UNIX); c.connect(p)\n"
        " a,_=l.accept(); a.send(b'hi'); print(c.recv(2).decode())\n"
    )
    assert (done.code, done.text) == (0, "hi\nhi\nhi\n"), done.err


def test_work_pseudo_terminals(box: Box) -> None:
    done = box.py(
        "import os,pty,tty\n"
        "m,s=os.openpty(); tty.setraw(s); os.write(m,b'ab'); print(os.read(s,2), os.ttyname(s))\n"
        "pid,fd=pty.fork()\n"
        "if pid==0: os.execvp('tty',['tty'])\n"
        "print(os.read(fd,100)); print(os.waitpid(pid,0)[1])\n"
    )
    assert (done.code, done.text) == (0, "b'ab' /dev/pts/0\nb'/dev/pts/1\\r\\n'\n0\n"), done.err


def test_work_ownership_as_root(box: Box) -> None:
    if not box.root:
        pytest.skip("not run: needs root")
    done = box.sh(
        "echo x > f && chown 1000:1000 f && chmod 600 f && echo more >> f && cp -a f g && stat -c %u:%g:%a g &&"
        "tar cf t.tar f && mkdir x && tar xf t.tar -C x && stat -c %u x/f && su nobody -s /bin/sh -c 'id -u' </dev/null"
    )
    assert done.text.startswith("1000:1000:600\n1000\n"), done.err


def test_work_memory_files_and_threads(box: Box) -> None:
    done = box.py(
        "import mmap,os,threading,multiprocessing as m\n"
        "f=os.memfd_create('x'); os.ftruncate(f,4096); a=mmap.mmap(f,4096); a[:2]=b'ok'; print(os.pread(f,2,0))\n"
        "t=threading.Thread(target=print,args=('thread',)); t.start(); t.join()\n"
        "q=m.SimpleQueue(); p=m.Process(target=q.put,args=(5,)); p.start(); print(q.get()); p.join()\n"
    )
    assert (done.code, done.text) == (0, "b'ok'\nthread\n5\n"), done.err


@pytest.mark.parametrize(
    ("program", "arguments", "answer"),
    [
        ("node", ("-e", "require('fs').writeFileSync('n','1'); setTimeout(()=>console.log('node'),5)"), "node\n"),
        ("bash", ("-c", "diff <(echo a) <(echo a) && echo same > /dev/stdout; echo e > /dev/stderr; echo /dev/fd/1"), "same\n/dev/fd/1\n"),
        ("gcc", ("-x", "c", "-o", "a.out", "-"), ""),
    ],
)  # fmt: skip
def test_work_programs_start(box: Box, program: str, arguments: tuple[str, ...], answer: str) -> None:
    if not shutil.which(program, path="/usr/local/bin:/usr/bin:/bin"):
        pytest.skip(f"not run: no {program}")
    done = box.run(program, *arguments, stdin=b"int main(){return 0;}\n" if program == "gcc" else b"")
    assert (done.code, done.text) == (0, answer), done.err


def test_work_second_run_on_the_same_layers_goes_on(box: Box) -> None:
    assert box.sh("echo one > f; mkdir d").code == 0
    done = box.sh("cat f; echo two >> f; cat f; ls")
    assert (done.code, done.text) == (0, "one\none\ntwo\nd\nf\n")
