"""The search index: tantivy only. Derived; thrown away and made anew at any doubt."""
