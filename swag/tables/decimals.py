"""Decimals as whole numbers of their smallest unit, and back: 12.50 of two digits behind the point is 1250.

    up to 18 digits     one int64, and all that knows whole numbers knows them
    more                two words, the low one and the high one; summed in four columns of 32 bits each, whose sums
                        fit int64 of as many rows as there can be, and put together exactly where an answer is made
    their order         is kept by numbers of words, as that of text is (swag/live/vocabulary/words.py)

Which it is the type alone says: the number of digits that a column may have. To go by the values would have kept small
ones of wide types in one word, but the first one that does not fit would then change how a running stream is kept,
with partials among it whose rows are gone, and what an answer costs would depend on what has passed.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadType, SumOverflow

ALWAYS_FIT = 18  # digits: every decimal of so many is an int64
MOST_DIGITS = 38
MOST_DIGITS_THERE_ARE = 76
LIMBS = 4
BITS = 32
LOW_BITS = np.int64(0xFFFFFFFF)
ROWS_FOR_CERTAIN = 1 << 27  # of so many a sum in floats is off by less than a quarter of 2^64, whatever the values
EXACT_DIGITS = 15  # decimals of so many digits are whole floats
EXACT_POWERS = 22  # 10 to this power is a float, and to no higher one
_TOO_LARGE = 10**MOST_DIGITS


def is_wide(kind: pa.DataType) -> bool:
    """May values be beyond int64?"""
    return bool(pa.types.is_decimal(kind) and kind.precision > ALWAYS_FIT)


def limb_names(name: str) -> tuple[str, ...]:
    """What the columns are called that a wide one is summed in."""
    return tuple(f"{name} / 2^{BITS * i}" for i in range(LIMBS))


def limb_of(name: str) -> tuple[str, int] | None:
    """The wide column that one of these names is of, and which of its limbs; None: it is no such name."""
    column, found, power = name.rpartition(" / 2^")
    return (column, int(power) // BITS) if found and power.isdigit() else None


def _words(array: pa.Array) -> np.ndarray:
    """The words of each value, the lowest first; of nulls anything."""
    width = array.type.byte_width // 8
    if not len(array):
        return np.zeros((0, width), np.int64)
    return np.frombuffer(array.buffers()[1], np.int64, width * len(array), array.offset * width * 8).reshape(-1, width)


def unscaled(array: pa.Array) -> np.ndarray:
    """The whole numbers of a column of decimals of few digits; 0 where it is null."""
    low = _words(array)[:, 0]
    return np.ascontiguousarray(np.where(np.asarray(array.is_valid()), low, 0) if array.null_count else low)


def exact(array: pa.Array, name: str) -> np.ndarray:
    """Of a column of many digits the low and the high word of each whole number; 0 where it is null."""
    words = _words(array)
    if array.null_count:
        words = np.where(np.asarray(array.is_valid())[:, None], words, 0)
    if words.shape[1] > 2:
        fits = (words[:, 2:] == words[:, 1:2] >> 63).all(axis=1)
        if not fits.all():
            row = int(np.argmin(fits))
            raise BadType(
                f'"{name}" ({array.type}) has {array[row].as_py()} in row {row}: decimals are computed with exactly up '
                f"to {MOST_DIGITS} digits.",
                f'CAST("{name}" AS DOUBLE), or AS DECIMAL(38, …) with fewer digits behind the point',
            )
    return np.ascontiguousarray(words[:, :2])


def limb(words: np.ndarray, i: int) -> np.ndarray:
    """32 bits of whole numbers: the lowest are limb 0, and the highest have the sign."""
    shifted = words[:, i // 2] >> (BITS * (i % 2))
    return np.asarray(shifted if i == LIMBS - 1 else shifted & LOW_BITS)


def big_endian(text: np.ndarray, width: int) -> np.ndarray:
    """The bytes of decimals, the highest first and the sign turned over: they compare as the decimals do."""
    found = text.reshape(-1, width)[:, ::-1].copy()
    found[:, 0] ^= 0x80
    return found.reshape(-1)


def _carried(limbs: list[np.ndarray]) -> list[np.ndarray]:
    """The same numbers, with all limbs but the highest between 0 and 2^32."""
    found: list[np.ndarray] = []
    carry = np.zeros_like(limbs[0])
    for each in limbs[:-1]:
        carry = each + carry
        found.append(carry & LOW_BITS)
        carry = carry >> BITS
    return [*found, limbs[-1] + carry]


def joined(limbs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sums of limbs as low and high words, in a last dimension of their own; and which have at most 38 digits."""
    w0, w1, w2, top = _carried(limbs)
    words = np.stack([w0 | w1 << BITS, w2 | top << BITS], axis=-1)
    return words, (top == top << BITS >> BITS) & _has_few_digits(words)


def _has_few_digits(words: np.ndarray) -> np.ndarray:
    low, high = words[..., 0].view(np.uint64), words[..., 1]
    most, least = divmod(_TOO_LARGE - 1, 2**64), divmod(1 - _TOO_LARGE, 2**64)
    below = (high < most[0]) | ((high == most[0]) & (low <= np.uint64(most[1])))
    return np.asarray(below & ((high > least[0]) | ((high == least[0]) & (low >= np.uint64(least[1])))))


def approximate(limbs: list[np.ndarray]) -> np.ndarray:
    """Sums of limbs as floats. Of negative ones the opposite is taken first: its limbs all have one sign."""
    negative = _carried(limbs)[-1] < 0
    w0, w1, w2, top = (each.astype(np.float64) for each in _carried([np.where(negative, -s, s) for s in limbs]))
    found = (top * 2.0**BITS + w2) * 2.0 ** (2 * BITS) + (w1 * 2.0**BITS + w0)
    return np.asarray(np.where(negative, -found, found))


def as_floats(words: np.ndarray, scale: int) -> np.ndarray:
    """Decimals as the floats next to them, or next but one."""
    return approximate([limb(words, i) for i in range(LIMBS)]) / 10.0**scale


def as_doubles(values: Any) -> Any:
    """Decimals as the floats next to them. (Those of Arrow's own cast are next but one for every eighth amount.)"""
    if isinstance(values, pa.Scalar):
        return pa.scalar(float(values.as_py()) if values.is_valid else None, pa.float64())
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([as_doubles(chunk) for chunk in values.chunks], pa.float64())
    kind = values.type
    if kind.byte_width < 16:
        return as_doubles(pc.cast(values, pa.decimal128(kind.precision, kind.scale)))
    words, valid = _words(values), np.asarray(values.is_valid())
    low = np.where(valid, words[:, 0], 0)
    found = low / 10.0 ** min(max(kind.scale, 0), EXACT_POWERS)  # correctly rounded, as both are exact
    if kind.precision > EXACT_DIGITS or not 0 <= kind.scale <= EXACT_POWERS:
        fits = (words[:, 1:] == (low >> 63)[:, None]).all(axis=1) & (np.abs(low) < 2**53)
        others = np.flatnonzero(valid & ~(fits & (0 <= kind.scale <= EXACT_POWERS)))
        if others.size:
            found[others] = np.asarray(pc.cast(pc.cast(values.take(pa.array(others)), pa.string()), pa.float64()))
    return pa.array(found, mask=~valid)


def unwrapped(wrapped: np.ndarray, about: np.ndarray, n: np.ndarray, name: str) -> np.ndarray:
    """Sums that went round 2^64, as words, from where that left them and what they are as floats. n: of how many rows:
    if they were too many, floats do not say how often."""
    with np.errstate(invalid="ignore"):
        turns = np.rint((about - wrapped) / 2.0**64)
    unknown = (turns != 0) & (n > ROWS_FOR_CERTAIN)
    if unknown.any():
        raise SumOverflow(
            f'a sum of "{name}" over {int(n[unknown][0]):,} rows does not fit int64.',
            f'CAST("{name}" AS DECIMAL(38, …))',
        )
    return np.stack([wrapped, (wrapped >> 63) + turns.astype(np.int64)], axis=-1)


def too_large(name: str) -> SumOverflow:
    """Of a sum that has no decimal."""
    return SumOverflow(f'a sum of "{name}" has more than 38 digits.', f'CAST("{name}" AS DOUBLE)')


def column_of(words: np.ndarray, valid: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """Words as decimals of a type. valid: which of them are not null (None: all)."""
    return from_unscaled(words, None if valid is None else np.packbits(valid, bitorder="little"), kind)


def from_unscaled(values: np.ndarray, bitmap: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """Whole numbers, or their words, as decimals of a type. bitmap: a bit for each, 0 where it is null."""
    words = values if values.ndim == 2 else np.stack([values, values >> 63], axis=-1)
    buffers = [None if bitmap is None else pa.py_buffer(bitmap), pa.py_buffer(np.ascontiguousarray(words))]
    carrier = kind if pa.types.is_decimal128(kind) else pa.decimal128(38, kind.scale)
    array = pa.Array.from_buffers(carrier, len(values), buffers)
    return array if carrier == kind else array.cast(kind)


def as_decimal(values: Any, kind: pa.DataType) -> Any:
    """Decimals and whole numbers as decimals of a type, the same to the last digit; refused where that can not be.

    By way of 256 bits: where digits are put behind the point, Arrow multiplies, and does not see every overflow.
    """
    if pa.types.is_integer(values.type):
        values = pc.cast(values, pa.decimal256(20, 0))
    if pa.types.is_decimal(values.type) and values.type.scale < kind.scale:
        scale = values.type.scale
        values = pc.cast(values, pa.decimal256(min(MOST_DIGITS_THERE_ARE, MOST_DIGITS + max(scale, 0)), scale))
        values = pc.cast(values, pa.decimal256(MOST_DIGITS_THERE_ARE, kind.scale))
    return pc.cast(values, kind)


def roomy(values: Any) -> Any:
    """Decimals before they are rounded: 9.98 then has a digit more, and Arrow does not always see if it has no room."""
    return pc.cast(values, pa.decimal256(MOST_DIGITS_THERE_ARE, values.type.scale))


def sum_type(kind: pa.DataType) -> pa.DataType:
    """Of a sum: as many digits as there are."""
    return pa.decimal256(76, kind.scale) if pa.types.is_decimal256(kind) else pa.decimal128(38, kind.scale)
