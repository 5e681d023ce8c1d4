"""Programs that people and agents touch. They know the client, nothing deeper."""
