"""What a container is to be, written down before it starts."""

import json
from dataclasses import asdict, dataclass, field, fields

from lab.places import Place


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or directory of the host, seen read-only in the container."""

    here: str
    inside: str


@dataclass(frozen=True, slots=True)
class Spec:
    suite: str
    base: str  # the name of its base's directory
    owner: int | None = None
    host_network: bool = False
    binds: tuple[Bind, ...] = ()
    layers: tuple[str, ...] = ()  # over the base, the uppermost first; below the cache
    variables: dict[str, str] = field(default_factory=dict)  # for every command run in it

    @classmethod
    def read(cls, place: Place) -> "Spec":
        raw = json.loads(place.spec.read_text(encoding="utf-8"))
        raw["binds"] = tuple(Bind(**bind) for bind in raw["binds"])
        raw["layers"] = tuple(raw.get("layers", ()))
        # Other checkouts, whose specs have other fields, share the cache and its sweeps.
        return cls(**{field.name: raw[field.name] for field in fields(cls) if field.name in raw})

    def write(self, place: Place) -> None:
        place.spec.write_text(json.dumps(asdict(self)), encoding="utf-8")
