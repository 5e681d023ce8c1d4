"""Thin: request to domain, domain to response. Decides nothing."""
