"""`memory mcp`: what memoryd remembers, as tools, resources and prompts for agents.

The only room that knows the Model Context Protocol. Thin over the client: it finds nothing out by
itself, it only makes answers short, and marks recalled text as what it is.
"""
