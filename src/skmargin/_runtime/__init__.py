"""Threads, tasks that Ctrl-C stops, progress, rows that several fits share."""
