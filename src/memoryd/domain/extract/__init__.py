"""The extractive summarizer: words chosen from the conversation itself, and never invented."""
