"""Fuzzing: random machines on random rows, judged by an oracle of their own; mutated files for every reader."""
