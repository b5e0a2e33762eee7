"""Compiled loops that only figures of this package use."""
