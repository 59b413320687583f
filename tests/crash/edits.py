"""The mixed edits of the crash tests, as a command would make them."""

import os
import shutil


def twenty_effects(top: str) -> None:
    with open(f"{top}/f0", "a", encoding="ascii") as file:
        file.write("more")
    with open(f"{top}/c/f1", "w", encoding="ascii") as file:
        file.write("less")
    os.unlink(f"{top}/f1")
    os.unlink(f"{top}/c/f2")
    os.chmod(f"{top}/f2", 0o600)
    os.chmod(f"{top}/e", 0o700)
    os.setxattr(f"{top}/e/f0", "user.t", b"1")
    os.mkdir(f"{top}/new")
    os.mkdir(f"{top}/new/empty")
    with open(f"{top}/new/n", "w", encoding="ascii") as file:
        file.write("n")
    os.link(f"{top}/new/n", f"{top}/new/also")
    os.link(f"{top}/e/f1", f"{top}/e/also")
    os.symlink("../f0", f"{top}/new/link")
    os.rename(f"{top}/a/b", f"{top}/new/moved")
    os.unlink(f"{top}/new/moved/f0")
    with open(f"{top}/new/moved/f1", "a", encoding="ascii") as file:
        file.write("more")
    os.mkdir(f"{top}/a/b")
    with open(f"{top}/a/b/again", "w", encoding="ascii") as file:
        file.write("again")
    shutil.rmtree(f"{top}/c/d")
    with open(f"{top}/c/d", "w", encoding="ascii") as file:
        file.write("was a folder")
    os.unlink(f"{top}/e/f2")
    os.mkdir(f"{top}/e/f2")
    os.rmdir(f"{top}/empty")
    os.unlink(f"{top}/link")
    os.symlink("f2", f"{top}/link")


def plain_effects(top: str) -> None:
    try:
        twenty_effects(top)
    except OSError:
        # without redirects a folder cannot be renamed: as mv does it
        shutil.copytree(f"{top}/a/b", f"{top}/new/moved")
        shutil.rmtree(f"{top}/a/b")
        os.rmdir(f"{top}/empty")
        shutil.rmtree(f"{top}/c/d")
