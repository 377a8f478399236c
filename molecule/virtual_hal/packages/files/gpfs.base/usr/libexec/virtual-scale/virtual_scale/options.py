"""The command line of mm commands: flags, options with a value, the rest."""

from __future__ import annotations

from collections.abc import Sequence

from virtual_scale.say import usage


class Options:
    """What a command was called with. Flags of one letter may be written together (-aL), as Scale allows."""

    def __init__(
        self,
        command: str,
        words: Sequence[str],
        flags: Sequence[str] = (),
        values: Sequence[str] = (),
        rest: bool = False,
    ) -> None:
        self.rest: list[str] = []
        self._given: set[str] = set()
        self._values: dict[str, str] = {}
        waiting = list(words)
        while waiting:
            word = waiting.pop(0)
            letters = [f"-{letter}" for letter in word[1:]]
            if word in values:
                if not waiting:
                    usage(command, f"Missing value for option {word}.")
                self._values[word] = waiting.pop(0)
            elif word in flags:
                self._given.add(word)
            elif word.startswith("-") and not word.startswith("--") and len(word) > 2 and set(letters) <= set(flags):
                self._given.update(letters)
            elif word.startswith("-") and len(word) > 1:
                usage(command, f"Incorrect option: {word}.")
            elif not rest:
                usage(command, f"Incorrect extra argument: {word}")
            else:
                self.rest.append(word)

    def given(self, flag: str) -> bool:
        """Return whether a flag was given."""
        return flag in self._given

    def value(self, name: str) -> str | None:
        """Return the value of an option; None when it was not given."""
        return self._values.get(name)
