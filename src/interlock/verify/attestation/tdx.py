"""Intel TDX quotes of version 4 and 5, with their PCK certificate's chain, and their TCB where collateral is given.

Two paths look at a quote: the signatures here, in plain steps, and the TCB's level in `dcap-qvl` (an extra), which
reads Intel's collateral. Neither alone makes a quote count.
Source: Intel TDX DCAP Quoting Library API 1.5, appendix A.3 (quote) and A.4 (TD report); PCK certificate profile 1.5.
"""

from datetime import datetime
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from interlock.model.records import dataclass
from interlock.verify.attestation import certificates, signatures
from interlock.verify.attestation.appraisal import Appraisal, Checking, Rejected
from interlock.verify.attestation.octets import Octets

_ECDSA_P256, _TDX = 2, 0x81
_INTEL = bytes.fromhex("939a7233f79c4ca9940a0db3957f0607")
_TD10, _TD15 = 2, 3
_SIZES = {_TD10: 584, _TD15: 648}
_QE_REPORT_DATA, _QE_CERTIFICATION, _PCK_CHAIN = 320, 6, 5
_P256 = ec.SECP256R1.name
_DEBUG = 1
UP_TO_DATE = frozenset({"UpToDate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TdxQuote:
    """A quote in its parts.

    Takes: `signed`, header and body; `key`, the attestation key that signed it; `qe_report`, of the quoting enclave,
    which vouches for that key; `pck`, the chain in PEM.
    """

    version: int
    signed: bytes
    body: bytes
    signature: bytes
    key: bytes
    qe_report: bytes
    qe_signature: bytes
    qe_data: bytes
    pck: bytes

    @property
    def report_data(self) -> bytes:
        """Return the 64 bytes that the caller had bound."""
        return self.body[520:584]

    @property
    def debug(self) -> bool:
        """Return whether the host may look into the trust domain."""
        return bool(self.body[120] & _DEBUG)


def read(data: bytes) -> TdxQuote:
    """Read a quote. Raises: Rejected, also where bytes other than zero follow its end."""
    octets = Octets(data)
    version = octets.little(2)
    if version not in (4, 5):
        raise Rejected("version", f"quotes of version {version} are not known")
    if octets.little(2) != _ECDSA_P256:
        raise Rejected("algorithm", "only ECDSA over P-256 is known")
    if octets.little(4) != _TDX:
        raise Rejected("malformed", "it is no quote of a trust domain")
    octets.take(4)
    if octets.take(16) != _INTEL:
        raise Rejected("malformed", "the quoting enclave is not Intel's")
    octets.take(20)
    kind = _TD10
    if version == 5:
        kind, size = octets.little(2), octets.little(4)
        if _SIZES.get(kind) != size:
            raise Rejected("version", "the report in it is of an unknown kind")
    body = octets.take(_SIZES[kind])
    signed = data[: octets.at]
    inside = Octets(octets.sized(4))
    if any(octets.take(octets.left)):
        raise Rejected("malformed", "bytes follow its end")
    signature, key = inside.take(64), inside.take(64)
    if inside.little(2) != _QE_CERTIFICATION:
        raise Rejected("malformed", "the quoting enclave's report is not there")
    certified = Octets(inside.sized(4))
    inside.end()
    qe_report, qe_signature, qe_data = certified.take(384), certified.take(64), certified.sized(2)
    if certified.little(2) != _PCK_CHAIN:
        raise Rejected("malformed", "the PCK certificate's chain is not there")
    pck = certified.sized(4)
    certified.end()
    return TdxQuote(
        version=version,
        signed=signed,
        body=body,
        signature=signature,
        key=key,
        qe_report=qe_report,
        qe_signature=qe_signature,
        qe_data=qe_data,
        pck=pck.rstrip(b"\0"),
    )


def appraise(
    quote: bytes,
    collateral: bytes | None,
    roots: frozenset[str],
    at: datetime,
    statuses: frozenset[str] = UP_TO_DATE,
) -> Appraisal:
    """Appraise a quote.

    Takes: `collateral`, Intel's answers as one JSON text, None where none was kept; `roots`, accepted
    `certificates.key_id`s; `at`, UTC; `statuses`, accepted levels of the TCB, in Intel's words.
    """
    checking = Checking("tdx")
    step = "layout"
    try:
        found = read(quote)
        checking.passed(step)
        step = "chain"
        chain = certificates.from_pem(found.pck)
        certificates.follow(chain, roots, at)
        checking.passed(step)
        step = "quoting-enclave"
        signatures.ecdsa(chain[0].public_key(), found.qe_signature, found.qe_report, hashes.SHA256(), _P256)
        named = found.qe_report[_QE_REPORT_DATA:]
        if named != sha256(found.key + found.qe_data).digest().ljust(64, b"\0"):
            raise Rejected("key", "the quoting enclave does not vouch for the key that signed")
        checking.passed(step)
        step = "signature"
        signatures.ecdsa(
            signatures.p256_point(found.key), found.signature, found.signed, hashes.SHA256(), _P256
        )
        checking.passed(step)
        step = "debug"
        if found.debug:
            raise Rejected("debug", "the host may look into the trust domain")
        checking.passed(step)
        step = "tcb"
        _check_tcb(checking, quote, collateral, at, statuses)
        checking.bound = found.report_data
        checking.genuine = True
        checking.claims |= {
            "mrtd": found.body[136:184].hex(),
            **{f"rtmr/{number}": found.body[328 + 48 * number :][:48].hex() for number in range(4)},
            "mrseam": found.body[16:64].hex(),
            "mrconfigid": found.body[184:232].hex(),
            "mrowner": found.body[232:280].hex(),
            "tee_tcb_svn": found.body[:16].hex(),
            "td_attributes": found.body[120:128].hex(),
            "xfam": found.body[128:136].hex(),
        }
    except Exception as error:  # noqa: BLE001 - fail closed: what cannot be looked at does not hold
        checking.ended(step, error)
    return checking.answer()


def _check_tcb(
    checking: Checking, quote: bytes, collateral: bytes | None, at: datetime, statuses: frozenset[str]
) -> None:
    if collateral is None:
        checking.not_checked("tcb", "no-collateral", "no collateral was kept with the quote")
        return
    try:
        import dcap_qvl
    except ImportError:
        checking.not_checked("tcb", "no-extra", "reading collateral needs: pip install 'interlock[tdx]'")
        return
    qvl: Any = dcap_qvl
    try:
        held = qvl.QuoteCollateralV3.from_json(collateral.decode())
        verified = qvl.verify(quote, held, int(at.timestamp()))
    except Exception as error:  # the library tells all that does not hold by words alone
        raise Rejected(_code_of(str(error)), f"the collateral does not hold: {_first_line(error)}") from error
    checking.claims["tcb_status"] = str(verified.status)
    checking.claims["advisories"] = " ".join(verified.advisory_ids)
    if verified.status not in statuses:
        raise Rejected("tcb", f"the TCB's level is {verified.status}, which is not accepted")
    checking.passed("tcb")


def _code_of(words: str) -> str:
    lower = words.lower()
    return (
        "collateral-time" if "expired" in lower or "future" in lower or "not valid" in lower else "collateral"
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
