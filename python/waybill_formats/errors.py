"""The one error of this package."""


class EnvelopeError(ValueError):
    """Something that is not what it should be: ``code`` for programs, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self):  # type: ignore[no-untyped-def]
        # The default would rebuild it from the message alone, which fails in another process.
        return (type(self), (self.code, str(self)))
