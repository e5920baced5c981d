"""Numbered changes of a store's tables."""
