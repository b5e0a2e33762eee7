"""The tour of `rlsvi demo`: four things the library does, each learned while one watches, and a page of them."""
