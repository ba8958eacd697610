"""Builders of zips: honest ones, and those that try to do harm.

`packed` writes a zip byte by byte, since a library refuses to write most of what is here. Each
attack takes an honest file's text and hides its harm beside it, so that a test can also see that
the honest file counts.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

HONEST = "basics.py"  # the name of the honest file in each attack
STORED, DEFLATED = 0, 8
MEGA = 2**20


def zipped(files: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An honest zip, as the standard library writes it."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


@dataclass(frozen=True)
class Member:
    """An entry as the archive describes it; None stands for the true value."""

    name: str | bytes
    data: bytes = b""
    method: int = DEFLATED
    mode: int = 0o100644
    flags: int = 0
    version: int = 20
    crc: int | None = None
    size: int | None = None
    body: bytes | None = None  # the packed bytes
    local_name: bytes | None = None
    extra: bytes = b""  # in the table of contents only
    offset: int | None = None  # of another entry; this entry's own bytes are then left out

    @property
    def raw_name(self) -> bytes:
        return self.name if isinstance(self.name, bytes) else self.name.encode()


def deflated(data: bytes) -> bytes:
    """The entry's own bytes in the zip."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


def packed(*members: Member, before: bytes = b"", after: bytes = b"", lie: int = 0) -> bytes:
    """A zip of these members, between other bytes; `lie` is added to the offset of its table."""
    files, table = b"", b""
    for member in members:
        body = member.body
        if body is None:
            body = deflated(member.data) if member.method == DEFLATED else member.data
        crc = zlib.crc32(member.data) if member.crc is None else member.crc
        size = len(member.data) if member.size is None else member.size
        told = (member.version, member.flags, member.method, 0, 0x21, crc, len(body), size)
        offset = len(files) if member.offset is None else member.offset
        local = member.raw_name if member.local_name is None else member.local_name
        table += (
            struct.pack(
                "<4sH5H3L5H2L",
                b"PK\1\2",
                3 << 8 | 20,
                *told,
                len(member.raw_name),
                len(member.extra),
                0,
                0,
                0,
                member.mode << 16,
                offset,
            )
            + member.raw_name
            + member.extra
        )
        if member.offset is None:
            files += struct.pack("<4s5H3L2H", b"PK\3\4", *told, len(local), 0) + local + body
    return before + files + table + end(len(members), len(table), len(files) + lie) + after


def end(entries: int, size: int, offset: int) -> bytes:
    """The record at the end of a zip."""
    told = min(entries, 2**16 - 1)
    return struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, told, told, size, offset, 0)


# --- attacks -------------------------------------------------------------------------------------

Attack = Callable[[str], bytes]


def _with(honest: str, *members: Member) -> bytes:
    return packed(Member(HONEST, honest.encode()), *members)


def _table_of(archive: bytes) -> int:
    """Where an archive's table of contents begins."""
    return archive.index(b"PK\1\2")


def zip_slip(honest: str) -> bytes:
    """Tries: to be written next to the folder that it is unpacked into."""
    return _with(honest, Member("../../layers.py", b"x = 1"), Member("a/../../b.txt", b"x"))


def absolute_path(honest: str) -> bytes:
    """Tries: to be written where the name says, on the grading machine."""
    return _with(honest, Member("/tmp/layers.py", b"x = 1"), Member("/etc/passwd", b"root"))


def drive_letter(honest: str) -> bytes:
    """Tries: the same on Windows."""
    return _with(honest, Member("C:\\layers.py", b"x = 1"), Member("d:layers.py", b"x = 1"))


def backslash_slip(honest: str) -> bytes:
    """Tries: a way up that only Windows understands, and a share on another machine."""
    return _with(
        honest, Member("..\\layers.py", b"x = 1"), Member("\\\\server\\layers.py", b"x = 1")
    )


def symlink(honest: str) -> bytes:
    """Tries: to pass the solutions off as the submission's own file."""
    return _with(honest, Member("layers.py", b"/srv/solutions/layers.py", mode=0o120777))


def symlinked_folder(honest: str) -> bytes:
    """Tries: to have a file written through a link to a folder elsewhere."""
    return _with(
        honest, Member("more", b"/etc", mode=0o120777), Member("more/layers.py", b"x = 1\n")
    )


def device(honest: str) -> bytes:
    """Tries: to make a device and a pipe that block whoever opens them."""
    return _with(honest, Member("layers.py", mode=0o020666), Member("pipe.py", mode=0o010666))


def bomb(honest: str) -> bytes:
    """Tries: to fill the memory with a small file of very many zeros."""
    return _with(honest, Member("layers.py", bytes(64 * MEGA)))


def lying_bomb(honest: str) -> bytes:
    """Tries: the same, and says that it holds a hundred bytes."""
    return _with(honest, Member("layers.py", size=100, body=deflated(bytes(64 * MEGA))))


def endless_stream(honest: str) -> bytes:
    """Tries: to keep the reader busy with packed blocks that hold nothing."""
    return _with(honest, Member("layers.py", size=100, body=b"\0\0\0\xff\xff" * MEGA))


def overlapping_bomb(honest: str) -> bytes:
    """Tries: to have the same packed bytes unpacked again and again."""
    offset = _table_of(_with(honest))
    copies = (Member(f"part_{n}.py", b"x = 1\n", offset=offset) for n in range(3))
    return _with(honest, Member("part.py", b"x = 1\n"), *copies)


def quoting_bomb(honest: str) -> bytes:
    """Tries: the same with an entry that reaches over the next one."""
    inner = packed(Member("inner.py", b"x = 1\n"))
    body = inner[: _table_of(inner)]
    offset = _table_of(_with(honest)) + 30 + len("outer.py")
    return _with(
        honest, Member("outer.py", body, STORED), Member("inner.py", b"x = 1\n", offset=offset)
    )


def nested_bomb(honest: str) -> bytes:
    """Tries: zips in zips in zips, as in 42.zip."""
    inner = packed(Member("zeros.py", bytes(4 * MEGA)))
    for _ in range(3):
        inner = zipped({f"{n}.zip": inner for n in range(8)})
    return _with(honest, Member("lib.zip", inner, STORED), Member("more/lib.tar.gz", b"x"))


def many_bombs(honest: str) -> bytes:
    """Tries: three hundred files, each within the limits of a single file."""
    data = b"x = 1\n" * (MEGA // 2)  # 3 MB
    body = deflated_slowly(data)
    return _with(honest, *(Member(f"part_{n:03}.py", data, crc=1, body=body) for n in range(300)))


def deflated_slowly(data: bytes) -> bytes:
    """Packed less well than it could be, in small pieces."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    pieces = [
        engine.compress(data[at : at + 4096]) + engine.flush(zlib.Z_FULL_FLUSH)
        for at in range(0, len(data), 4096)
    ]
    return b"".join(pieces) + engine.flush()


def same_name_twice(honest: str) -> bytes:
    """Tries: to show one file to a teacher, and another to the grader."""
    return packed(Member(HONEST, b"raise SystemExit\n"), Member(HONEST, honest.encode()))


def same_name_another_way(honest: str) -> bytes:
    """Tries: the same with paths that only look different."""
    return packed(
        Member("./more//caf\u00e9.py", b"first\n"),
        Member("more/cafe\u0301.py", b"last\n"),
        Member(HONEST, honest.encode()),
    )


def capital_letters(honest: str) -> bytes:
    """Tries: two files that are one on macOS and Windows."""
    return _with(honest, Member(HONEST.upper(), b"x = 1\n"))


def newline_in_name(honest: str) -> bytes:
    """Tries: to add lines of its own to a report or a table."""
    return _with(honest, Member("a\nmallory,graded,60.py", b"x"), Member("b\x1b[2J.py", b"x"))


def nul_in_name(honest: str) -> bytes:
    """Tries: a name that ends at another place for each program."""
    return _with(honest, Member("layers.py\0.txt", b"x = 1"), Member("lay\0ers.py", b"x = 1"))


def long_name(honest: str) -> bytes:
    """Tries: a name that no file system takes."""
    return _with(honest, Member("a" * 4_093 + ".py", b"x = 1"), Member("b/" * 2_000 + "c.py", b"x"))


def broken_unicode(honest: str) -> bytes:
    """Tries: to stop the reader with a name that says it is UTF-8, and is not."""
    return _with(
        honest,
        Member(b"\xfe\x81.py", b"x = 1\n", flags=0x800),
        Member(b"half\xed\xa0\xbd.py", b"y = 1\n", flags=0x800),
    )


def deceiving_unicode(honest: str) -> bytes:
    """Tries: a name that reads backwards, and one that is a spreadsheet's formula."""
    return _with(honest, Member("\u202eyp.sreyal.py", b"x = 1\n"), Member("=cmd().py", b"y = 1\n"))


def encrypted(honest: str) -> bytes:
    """Tries: to be asked for a password."""
    return _with(honest, Member("layers.py", b"x = 1", flags=1))


def unknown_method(honest: str) -> bytes:
    """Tries: ways of packing that need much memory, or are not known at all."""
    return _with(
        honest, Member("bz2.py", b"x", 12), Member("lzma.py", b"x", 14), Member("odd.py", b"x", 99)
    )


def from_the_future(honest: str) -> bytes:
    """Tries: to stop the reader with a version that is not there yet."""
    return _with(honest, Member("layers.py", b"x = 1\n", version=255))


def wrong_account(honest: str) -> bytes:
    """Tries: to be read although a checksum, the packed bytes or a size is not the true one."""
    return _with(
        honest,
        Member("a.py", b"x = 1", crc=7),
        Member("b.py", body=b"\xff" * 9),
        Member("c.py", b"x = 1", size=100),
        Member("d.py", b"x = 1", STORED, size=3),
        Member("e.py", b"x = 1", body=deflated(b"x = 1")[:-2]),
    )


def two_faces(honest: str) -> bytes:
    """Tries: one name in the table of contents, and another before the bytes."""
    return _with(honest, Member("layers.py", b"x = 1", local_name=b"evil.exe"))


def zip64_lies(honest: str) -> bytes:
    """Tries: sizes and places beyond any disk."""
    far = struct.pack("<2HQ", 1, 8, 2**63)
    return _with(
        honest,
        Member("far.py", b"x = 1", extra=far, offset=2**32 - 1),
        Member("large.py", b"x", extra=far, size=2**32 - 1),
        Member("short.py", b"x", extra=struct.pack("<2H", 1, 8), size=2**32 - 1),
    )


def many_entries(honest: str) -> bytes:
    """Tries: a table of contents of a million entries."""
    one = packed(Member("a", offset=2**31))
    first = _with(honest)
    at = _table_of(first)
    table = first[at:-22] + one[_table_of(one) : -22] * 1_000_000
    return first[:at] + table + end(1_000_001, len(table), at)


def crowded(archive: bytes, entries: int) -> tuple[bytes, bytes, bytes]:
    """An archive's files, its table with so many entries more, and the end of both."""
    at = _table_of(archive)
    one = packed(Member("x000000.py", offset=2**31))
    row = one[_table_of(one) : -22]
    table = archive[at:-22] + b"".join(
        row.replace(b"000000", b"%06d" % number) for number in range(entries)
    )
    return archive[:at], table, end(entries + 1, len(table), at)


def entries_behind_another_end(honest: str) -> bytes:
    """Tries: to show a short table first, and to have a long one read."""
    files, table, its_end = crowded(_with(honest), 200_000)
    return files + table + end(1, 0, len(files)) + its_end


def entries_before_a_comment(honest: str) -> bytes:
    """Tries: to hide the true table, and show another inside a comment."""
    files, table, its_end = crowded(_with(honest), 200_000)
    short = _with(honest)[len(files) : -22]
    comment = short + end(1, len(short), len(files + table + its_end))
    return files + table + its_end[:-2] + struct.pack("<H", len(comment)) + comment


def entries_in_zip64(honest: str, place: int | None = None) -> bytes:
    """Tries: a short table in the usual place, and a long table in the zip64 place."""
    files, table, _ = crowded(_with(honest), 200_000)
    told = (200_001, 200_001, len(table), len(files))
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, *told)
    at = len(files + table) if place is None else place
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
    return files + table + record + locator + end(1, 50, len(files))


def entries_in_zip64_elsewhere(honest: str) -> bytes:
    """Tries: the same, and misleads about where that is."""
    return entries_in_zip64(honest, place=0)


def wide_entries(honest: str) -> bytes:
    """Tries: the same with few entries of very many bytes each."""
    wide = (Member(f"{n}" + "n" * 60_000, extra=bytes(60_000)) for n in range(100))
    return _with(honest, *wide)


def table_that_breaks_off(honest: str) -> bytes:
    """Tries: a table of contents that is not one from its second line on."""
    whole = _with(honest, Member("layers.py", b"x = 1\n"))
    at = whole.rindex(b"PK\1\2")
    return whole[:at] + b"XX" + whole[at + 2 :]


def garbage_before_and_after(honest: str) -> bytes:
    """Tries: to be a program that unpacks itself."""
    inner = Member(HONEST, honest.encode())
    return packed(inner, before=b"MZ" + bytes(999), after=b"garbage" * 99)


def polyglot(honest: str) -> bytes:
    """Tries: to be a PDF, a Python file and a zip at once."""
    return packed(Member(HONEST, honest.encode()), before=b'"""%PDF-1.4 ', after=b'"""')


# Unreadable archives: they hold no honest file.


def not_a_zip() -> bytes:
    """Tries: nothing; a student renamed a document."""
    return b"%PDF-1.4 my answers"


def nothing_at_all() -> bytes:
    """Tries: nothing; the upload failed."""
    return b""


def cut_off() -> bytes:
    """Tries: nothing; the upload broke off."""
    return zipped({HONEST: "x = 1\n" * 99})[:-30]


def table_beyond_the_end() -> bytes:
    """Tries: to have gigabytes read that are not there."""
    return packed(Member(HONEST, b"x = 1\n"))[:-22] + end(1, 2**31, 0)


def offsets_beyond_the_end() -> bytes:
    """Tries: entries before the first byte of the file."""
    return packed(Member(HONEST, b"x = 1\n"), lie=2**30)


def all_encrypted() -> bytes:
    """Tries: nothing; the password was sent to the teacher by mail."""
    return packed(Member(HONEST, b"x", flags=1), Member("layers.ipynb", b"x", flags=1))


# Readable archives without an answer.


def empty_zip() -> bytes:
    """Tries: nothing; the student chose no file."""
    return zipped({})


def no_source_file() -> bytes:
    """Tries: nothing; the wrong folder was packed."""
    return zipped({"report.pdf": b"%PDF", "data/": b"", "__MACOSX/._basics.py": b"\0\5\x16"})
