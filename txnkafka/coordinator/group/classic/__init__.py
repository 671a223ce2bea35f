"""Groups and members of the classic protocol."""
