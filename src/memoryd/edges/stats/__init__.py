"""Figures about a memory: events per day, who spoke how much, how it adds up; and their pictures."""
