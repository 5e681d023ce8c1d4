"""The one error of this room: something in the way of a change, so that nothing was changed."""


class Refused(Exception):
    """A file is not as it would have to be. Its message names the file and what to do."""
