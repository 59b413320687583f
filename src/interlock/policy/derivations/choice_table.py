"""The rules of choice for docs/derivations.md: which of many values the task means."""

from interlock.policy.derivations import names
from interlock.policy.derivations.table import Rule

_ANSWER = "the tool's answer"
CHOICE_RULES = (
    Rule(
        name=names.RECORD_SELECTED,
        node=_ANSWER,
        says="A typed leaf of the one record that a trusted text names by another of its fields, or by the call's "
        "argument. Premise: where it is named.",
        example='`ann@a.test` beside `Ann Smith` in a listing of contacts, task "write to Ann Smith"',
        counter_example="the same where two contacts are called `Ann Smith`",
    ),
    Rule(
        name=names.PREFIX_SELECTED,
        node=_ANSWER,
        says="The one name in a listing of your own that begins as the task says, after `starting with` or as a first "
        "name. Premise: that word of the task.",
        example='`Ann Smith`, the only name with `Ann`, task "tell Ann"',
        counter_example="the same where `Ann Moor` is listed too",
    ),
    Rule(
        name=names.FIRST_NAME,
        node=_ANSWER,
        says="An address to which you wrote (`correspondents`) that begins with the first name by which the task calls "
        "somebody, and no other to which you wrote does. Premises: that word, then where the task names each argument "
        "of the reading call.",
        example='`ann.smith@a.test`, to which you sent a mail, task "invite Ann"',
        counter_example="the same address where it only wrote to you; where you wrote to `ann@b.test` as well; task "
        '"invite Ann Moor"',
    ),
    Rule(
        name=names.EXTREME_OF,
        node=_ANSWER,
        says="A leaf of the one record at that end of a field which the task asks for, in an enumeration that the "
        "agent did not cut. Premises: the task's word, then where it names each argument of the reading call.",
        example='the id of the larger file, task "delete the largest file", with `ranks: {size: {most: [largest]}}`',
        counter_example="the same where two files are of that size, or one has none",
    ),
    Rule(
        name=names.WHOLE_ENUMERATION,
        node=_ANSWER,
        says="A leaf of an answer of which the task asks for all, each once for a tool. Premises: the task's words, "
        "then where it names each argument of the reading call.",
        example='each address of a listing of users, task "mail all users", with `covers: [user]`',
        counter_example='the same, task "mail all users who are new"',
    ),
    Rule(
        name=names.DELEGATED,
        node=_ANSWER,
        says="The only value of its type in all that was read of a source to which `delegate` hands over the role, and "
        "which the policy or the task names. Premises: where the task names it.",
        example='the only IBAN in `bill.txt`, task "pay the bill `bill.txt`"',
        counter_example="the same where the bill has two",
    ),
    Rule(
        name=names.RECEIVED_WHOLE,
        node=_ANSWER,
        says="An address that a reading call opens stands in such a source as it is. Premises as above.",
        example="`https://a.test/x` in a message that the task names",
        counter_example="`https://a.test/x?code=1`, which the agent made of it",
    ),
    Rule(
        name=names.DAY_NAMED,
        node="the task",
        says="The day on which a date or a time lies: written with or without its year, or today or tomorrow. Premise, "
        "of the latter: the day that your own calendar gave.",
        example='`2024-05-19 10:00`, task "on May 19th"',
        counter_example='`2024-05-20`, task "on May 19th"',
    ),
    Rule(
        name=names.OWN_CHOICE,
        node=_ANSWER,
        says="A field, declared of this type, of an answer that others do not fill, for an argument in the tool's "
        "`chooses`: the operator leaves it to the agent which of your own things it is. Premise, where the tool has "
        "`asks`: the word by which the task asks for such a call.",
        example='the id of an item in the cart, task "remove the other items", with `chooses: [item]`',
        counter_example="an id that is in a shop's catalogue alone; any id, where the task asks for no removal",
    ),
    Rule(
        name=names.SAME_SITE,
        node=_ANSWER,
        says="A link that a tool with `links` opens, which stands as it is in what a site answered, and leads to the "
        "same host. Premise: where the task names the address that was opened, or by which such link it was reached.",
        example='`https://a.test/files/x.pdf` in the page `a.test`, task "get the file from a.test"',
        counter_example="`https://b.test/x.pdf` in the same page; `https://a.test/x?k=1`, which the agent made of it",
    ),
    Rule(
        name=names.MADE_HERE,
        node=_ANSWER,
        says="A name in quotes in the answer of a call whose tool declares `makes`, which the call was not given; of a "
        "path, all below it as well.",
        example="`/work/copy/a.txt` after a clone that said `into '/work/copy'`",
        counter_example="`/work/other/a.txt`; `/work/copy/../a.txt`",
    ),
)
"""The rules whose checkers stand in `checks_choice`."""
