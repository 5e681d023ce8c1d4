"""`memory demo`: a story that ships with the package, in a memory of its own that goes when one leaves."""
