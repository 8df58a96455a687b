"""One stable word and what there is to say of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """The explanation of a word; each text is a clause without a full stop, NAME is the server's.

    Attributes:
        meaning: what is so.
        usually: the usual cause.
        remedy: what to do.
        look: where to look.
    """

    word: str
    meaning: str
    usually: str
    remedy: str
    look: str

    def as_data(self) -> dict[str, str]:
        """For `--json`."""
        return {
            "code": self.word,
            "meaning": self.meaning,
            "usually": self.usually,
            "remedy": self.remedy,
            "look": self.look,
        }
