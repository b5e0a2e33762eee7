"""Compiled mathematics: arrays in, arrays out."""
