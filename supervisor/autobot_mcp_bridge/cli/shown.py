"""Quantities for people."""


def show_bytes(number: int | None) -> str:
    """`52.4M`; a dash for what is not known."""
    if number is None:
        return "-"
    value = float(number)
    for unit in ("B", "K", "M", "G"):
        if value < 1024 or unit == "G":
            break
        value /= 1024
    return f"{value:.0f}{unit}" if unit == "B" else f"{value:.1f}{unit}"


def show_seconds(seconds: float | None, *, none: str = "-") -> str:
    """`1d 2h`, `5m 3s`, `0.4s`: the two largest units."""
    if seconds is None:
        return none
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        number, whole = divmod(whole, size)
        if number or (unit == "s" and not parts):
            parts.append(f"{number}{unit}")
    return " ".join(parts[:2])
