"""Generated from proto/ by scripts/proto; never edited. Only rpc and client import it."""
