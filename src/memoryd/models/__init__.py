"""Model-written summaries, opt-in: the only room that sends anything over a network. Derived.

What leaves the machine: the text of the events of a finished segment (already redacted when they
were taken in) with the role of the speaker, or the titles and bullets of the nodes below a period.
No ids, no times, no paths of the store, no metadata. It goes to the one configured address, and
only if a provider is configured.
"""
