"""Whose key a request carries, what the ledger says of it, and where the real secret goes."""

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.boundary.net.credentials import Credentials, headers_for_ledger
from interlock.boundary.net.plan import BoundSecret, NetPlan, Published
from interlock.boundary.net.proposing import Sight
from interlock.boundary.net.sides import RequestHead
from interlock.model.errors import InputError
from interlock.model.requests import Credential

SECRET = BoundSecret(
    name="api",
    hosts=("api.example", "*.cdn.example"),
    placeholder="il-ph-7f3a91",
    secret="sk-real-0123456789abcdef",
)
OTHER_KEY = b"sk-stolen-ffffffffffffffff"


def head(
    *headers: tuple[bytes, bytes],
    target: str = "/v1",
    host: str = "api.example",
    scheme: str = "https",
    port: int = 443,
) -> RequestHead:
    return RequestHead(
        method="GET", scheme=scheme, authority_host=host, port=port, target=target, headers=headers, length=0
    )


def keys(*secrets: BoundSecret, **changes: object) -> Credentials:
    return Credentials(NetPlan(folder="/nowhere", secrets=secrets, **changes))  # type: ignore[arg-type]


def basic(user: bytes, password: bytes) -> bytes:
    return b"Basic " + base64.b64encode(user + b":" + password)


def hashed(value: bytes) -> str:
    return "sha256:" + hashlib.sha256(value).hexdigest()[:16]


def token(subject: str, number: int) -> bytes:
    def part(content: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=")

    return b".".join((part({"alg": "none"}), part({"iss": "i", "sub": subject, "jti": number}), b"c2ln"))


def test_fields_that_are_only_named_like_a_key_are_none() -> None:
    made = head((b"npm-auth-type", b"web"), (b"npm-session", b"3f1c"), (b"accept", b"*/*"))
    assert keys().seen(made) == (Credential.NONE, tuple((n.decode(), v.decode()) for n, v in made.headers))


def test_a_request_without_a_key_has_none() -> None:
    assert keys().seen(head((b"accept", b"*/*"), target="/a?page_token=x&sort_key=y"))[0] is Credential.NONE


@pytest.mark.parametrize(
    "value",
    [
        b"Bearer il-ph-7f3a91",
        b"token il-ph-7f3a91",
        b"il-ph-7f3a91",
        b'Token token="il-ph-7f3a91"',
        basic(b"user", b"il-ph-7f3a91"),
        basic(b"il-ph-7f3a91", b""),
        basic(b"il-ph-7f3a91", b"x-oauth-basic"),
    ],
)
def test_the_placeholder_is_bound_and_becomes_the_secret(value: bytes) -> None:
    credentials = keys(SECRET)
    request = head((b"authorization", value), (b"accept", b"*/*"))
    assert credentials.seen(request)[0] is Credential.BOUND
    sent = dict(credentials.put_in(request).headers)
    if value.startswith(b"Basic"):
        plain = base64.b64decode(sent[b"authorization"].split()[1])
        assert plain == base64.b64decode(value.split()[1]).replace(
            b"il-ph-7f3a91", b"sk-real-0123456789abcdef"
        )
    else:
        assert sent[b"authorization"] == value.replace(b"il-ph-7f3a91", b"sk-real-0123456789abcdef")
    assert sent[b"accept"] == b"*/*"


@pytest.mark.parametrize(
    "fields",
    [
        ((b"authorization", b"Bearer " + OTHER_KEY),),
        ((b"x-api-key", OTHER_KEY),),
        ((b"authorization", basic(b"il-ph-7f3a91", OTHER_KEY)),),
        ((b"authorization", b"Bearer il-ph-7f3a91"), (b"x-api-key", OTHER_KEY)),
        ((b"authorization", b"Bearer il-ph-7f3a91, Bearer " + OTHER_KEY),),
        ((b"authorization", b"Bearer il-ph-7f3a91"), (b"authorization", b"Bearer " + OTHER_KEY)),
    ],
)
def test_another_key_than_the_bound_one_is_foreign(fields: tuple[tuple[bytes, bytes], ...]) -> None:
    assert keys(SECRET).seen(head(*fields))[0] is Credential.FOREIGN


def test_another_key_in_the_query_is_foreign_beside_the_bound_one() -> None:
    request = head(
        (b"authorization", b"Bearer il-ph-7f3a91"), target=f"/v1?access_token={OTHER_KEY.decode()}"
    )
    assert keys(SECRET).seen(request)[0] is Credential.FOREIGN


def test_the_real_secret_held_by_the_agent_is_no_foreign_account() -> None:
    request = head((b"authorization", b"Bearer sk-real-0123456789abcdef"))
    assert keys(SECRET).seen(request)[0] is Credential.OWN


def test_the_first_key_with_a_host_is_its_own_and_another_is_foreign() -> None:
    credentials = keys()
    own = head((b"authorization", b"Bearer mine-0123456789"))
    assert credentials.seen(own)[0] is Credential.OWN
    assert credentials.passed(own)
    assert credentials.seen(head())[0] is Credential.NONE
    assert credentials.seen(own)[0] is Credential.OWN
    assert credentials.seen(head((b"authorization", basic(b"me", b"mine-0123456789"))))[0] is Credential.OWN
    assert credentials.seen(head((b"authorization", b"Bearer " + OTHER_KEY)))[0] is Credential.FOREIGN
    assert credentials.seen(head((b"x-api-key", OTHER_KEY)))[0] is Credential.FOREIGN
    assert credentials.seen(head(target=f"/?key={OTHER_KEY.decode()}"))[0] is Credential.FOREIGN
    elsewhere = head((b"authorization", b"Bearer " + OTHER_KEY), host="b.example")
    assert credentials.seen(elsewhere)[0] is Credential.OWN
    assert credentials.seen(own)[0] is Credential.OWN


def test_a_key_that_was_refused_makes_no_other_foreign() -> None:
    credentials = keys()
    sight = Sight(credentials)
    stolen = head((b"authorization", b"Bearer " + OTHER_KEY))
    own = head((b"authorization", b"Bearer mine-0123456789"))
    assert sight.seen(stolen)[0] is Credential.OWN  # nothing is known yet, and it is then refused
    assert sight.seen(own)[0] is Credential.OWN
    sight.passed(head())
    sight.passed(own)
    assert sight.seen(stolen)[0] is Credential.FOREIGN
    sight.passed(stolen)  # the user let it pass: it is no less foreign
    assert [sight.seen(one)[0] for one in (own, stolen)] == [Credential.OWN, Credential.FOREIGN]


def test_a_bound_host_remembers_no_key() -> None:
    credentials = keys(SECRET)
    assert not credentials.passed(head((b"authorization", b"Bearer il-ph-7f3a91")))
    assert not credentials.passed(head((b"authorization", b"Bearer " + OTHER_KEY)))
    assert credentials.seen(head((b"authorization", b"Bearer " + OTHER_KEY)))[0] is Credential.FOREIGN


def test_a_renewed_token_is_the_same_account_and_anothers_is_not() -> None:
    credentials = keys()
    assert credentials.seen(head((b"authorization", b"Bearer " + token("me", 1))))[0] is Credential.OWN
    credentials.passed(head((b"authorization", b"Bearer " + token("me", 1))))
    assert credentials.seen(head((b"authorization", b"Bearer " + token("me", 2))))[0] is Credential.OWN
    assert credentials.seen(head((b"authorization", b"Bearer " + token("you", 3))))[0] is Credential.FOREIGN


def test_a_signed_request_is_known_by_its_key_id() -> None:
    def signed(key: bytes, signature: bytes) -> RequestHead:
        value = (
            b"AWS4-HMAC-SHA256 Credential=" + key + b"/20261202/eu/s3/aws4_request, Signature=" + signature
        )
        return head((b"authorization", value))

    credentials = keys()
    assert credentials.seen(signed(b"AKIAMINE", b"11"))[0] is Credential.OWN
    credentials.passed(signed(b"AKIAMINE", b"11"))
    assert credentials.seen(signed(b"AKIAMINE", b"22"))[0] is Credential.OWN
    assert credentials.seen(signed(b"AKIAYOURS", b"33"))[0] is Credential.FOREIGN


def test_cookies_are_a_key_but_change_without_being_another_account() -> None:
    credentials = keys()
    assert credentials.seen(head((b"cookie", b"s=1")))[0] is Credential.OWN
    assert credentials.seen(head((b"cookie", b"s=2")))[0] is Credential.OWN


def test_the_ledger_holds_digests_of_keys_and_the_rest_as_it_is() -> None:
    fields = (
        (b"authorization", b"Bearer x"),
        (b"proxy-authorization", b"Basic eA=="),
        (b"cookie", b"a=b"),
        (b"set-cookie", b"c=d"),
        (b"x-csrf-token", b"t"),
        (b"x-client-secret", b"u"),
        (b"x-amz-security-token", b"v"),
        (b"private-token", b"w"),
        (b"accept", b"caf\xe9"),
        (b"sec-websocket-key", b"k"),
        (b"idempotency-key", b"i"),
        (b"www-authenticate", b"Bearer"),
        (b"x-author", b"me"),
        (b"authorization", b""),
    )
    assert headers_for_ledger(fields) == (
        ("authorization", hashed(b"Bearer x")),
        ("cookie", hashed(b"a=b")),
        ("set-cookie", hashed(b"c=d")),
        ("x-csrf-token", hashed(b"t")),
        ("x-client-secret", hashed(b"u")),
        ("x-amz-security-token", hashed(b"v")),
        ("private-token", hashed(b"w")),
        ("accept", "caf\xe9"),
        ("sec-websocket-key", "k"),
        ("idempotency-key", "i"),
        ("www-authenticate", "Bearer"),
        ("x-author", "me"),
        ("authorization", ""),
    )
    assert keys().seen(head(*fields))[1] == headers_for_ledger(fields)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a=b&c", "a=b&c"),
        ("key=k%20v&a=b", f"key={hashed(b'k v')}&a=b"),
        ("a=b&ACCESS_TOKEN=x+y&d=", f"a=b&ACCESS_TOKEN={hashed(b'x y')}&d="),
        ("%6bey=v", f"%6bey={hashed(b'v')}"),
        (
            "page_token=1&sort_key=a&monkey=2&keyword=3&zip_code=4",
            "page_token=1&sort_key=a&monkey=2&keyword=3&zip_code=4",
        ),
        (
            "client_secret=s&sig=t&X-Amz-Signature=u",
            f"client_secret={hashed(b's')}&sig={hashed(b't')}&X-Amz-Signature={hashed(b'u')}",
        ),
        ("key=1&key=2", f"key={hashed(b'1')}&key={hashed(b'2')}"),
    ],
)
def test_the_ledgers_query_holds_digests_of_keys(query: str, wanted: str) -> None:
    assert keys().query_for_ledger(f"/p?{query}" if query else "/p") == wanted


def test_the_secret_goes_into_key_parameters() -> None:
    secret = BoundSecret(name="q", hosts=("api.example",), placeholder="ph-1", secret="a+b/c&d=é")
    credentials = keys(secret)
    request = head(target="/p/ph-1?key=ph-1&x=ph-1")
    assert credentials.seen(request)[0] is Credential.BOUND
    assert credentials.put_in(request).target == "/p/ph-1?key=a%2Bb%2Fc%26d%3D%C3%A9&x=ph-1"


@pytest.mark.parametrize(
    "request_head",
    [
        head((b"authorization", b"Bearer il-ph-7f3a91"), host="evil.example"),
        head((b"authorization", b"Bearer il-ph-7f3a91"), host="cdn.example"),
        head((b"authorization", b"Bearer il-ph-7f3a91"), host="api.example.evil.example"),
        head((b"authorization", b"Bearer il-ph-7f3a91"), scheme="http", port=80),
        head((b"user-agent", b"il-ph-7f3a91")),
        head((b"referer", b"https://a/?k=il-ph-7f3a91")),
        head(target="/echo?text=il-ph-7f3a91"),
    ],
)
def test_the_secret_goes_nowhere_else(request_head: RequestHead) -> None:
    credentials = keys(SECRET)
    assert credentials.put_in(request_head) is request_head
    assert credentials.seen(request_head)[0] is not Credential.BOUND


def test_the_secret_goes_to_names_below_and_in_clear_text_to_this_machine_alone() -> None:
    below = head((b"x-api-key", b"il-ph-7f3a91"), host="eu.cdn.example")
    assert keys(SECRET).put_in(below).headers == ((b"x-api-key", b"sk-real-0123456789abcdef"),)
    near = BoundSecret(name="m", hosts=("127.0.0.1", "model.lan"), placeholder="ph-1", secret="real")
    published = (Published(port=8080, host="model.lan", host_port=9000),)
    clear = keys(near, published=published)
    for host, port in (("127.0.0.1", 8080), ("model.lan", 9000)):
        request = head((b"authorization", b"Bearer ph-1"), host=host, port=port, scheme="http")
        assert clear.put_in(request).headers == ((b"authorization", b"Bearer real"),)
        assert clear.seen(request)[0] is Credential.BOUND
    away = head((b"authorization", b"Bearer ph-1"), host="model.lan", port=80, scheme="http")
    assert clear.put_in(away) is away


def test_the_secret_goes_in_clear_text_to_its_own_hosts_where_the_operator_says_so() -> None:
    bare = BoundSecret(name="m", hosts=("model.lan",), placeholder="ph-1", secret="real", plain_http=True)
    request = head((b"authorization", b"Bearer ph-1"), host="model.lan", port=80, scheme="http")
    assert keys(bare).put_in(request).headers == ((b"authorization", b"Bearer real"),)
    assert keys(bare).seen(request)[0] is Credential.BOUND
    foreign = head((b"authorization", b"Bearer another"), host="model.lan", port=80, scheme="http")
    assert keys(bare).seen(foreign)[0] is Credential.FOREIGN
    elsewhere = head((b"authorization", b"Bearer ph-1"), host="other.lan", port=80, scheme="http")
    assert keys(bare).put_in(elsewhere) is elsewhere


def test_a_placeholder_that_begins_like_another_is_not_mistaken_for_it() -> None:
    short = BoundSecret(name="s", hosts=("api.example",), placeholder="ph-1", secret="short")
    long = BoundSecret(name="l", hosts=("api.example",), placeholder="ph-12", secret="long")
    sent = keys(short, long).put_in(head((b"x-api-key", b"ph-12"), (b"x-auth-token", b"ph-1")))
    assert sent.headers == ((b"x-api-key", b"long"), (b"x-auth-token", b"short"))


@pytest.mark.parametrize("secret", ["", "a\r\nhost: evil", "a\n", "a b", "a\x00"])
def test_a_secret_that_cannot_stand_in_a_field_is_refused(secret: str) -> None:
    with pytest.raises(InputError) as caught:
        keys(BoundSecret(name="bad", hosts=("api.example",), placeholder="ph-1", secret=secret))
    assert "`bad`" in caught.value.message
    assert not secret or secret not in caught.value.message


@given(
    st.lists(st.tuples(st.sampled_from([b"authorization", b"x-api-key", b"cookie"]), st.binary(max_size=60)))
)
def test_whatever_the_fields_hold_nothing_crashes_and_no_key_is_shown(
    fields: list[tuple[bytes, bytes]],
) -> None:
    credentials = keys(SECRET)
    request = head(*fields, target="/?" + "&".join(value.hex() for _, value in fields))
    _, shown = credentials.seen(request)
    credentials.put_in(request)
    assert all(text == "" or text.startswith("sha256:") for _, text in shown)
