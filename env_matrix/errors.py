"""The one kind of error that a person can mend."""


class UserError(Exception):
    """Bad input or a missing piece: its text is one sentence that says what to do."""
