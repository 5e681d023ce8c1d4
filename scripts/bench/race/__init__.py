"""The parts of `scripts/bench/all`: what is compared, with whom, and how it is told."""
