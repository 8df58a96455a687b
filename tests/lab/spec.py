"""What a container is to be, written down before it starts."""

import json
from dataclasses import asdict, dataclass, field

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
    variables: dict[str, str] = field(default_factory=dict)  # for every command run in it

    @classmethod
    def read(cls, place: Place) -> "Spec":
        raw = json.loads(place.spec.read_text(encoding="utf-8"))
        raw["binds"] = tuple(Bind(**bind) for bind in raw["binds"])
        return cls(**raw)

    def write(self, place: Place) -> None:
        place.spec.write_text(json.dumps(asdict(self)), encoding="utf-8")
