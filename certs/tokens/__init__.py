"""Caller tokens: which ones the webhook accepts and which one is registered (`token_plan`), in a Secret
(`token_rotation`).
"""
