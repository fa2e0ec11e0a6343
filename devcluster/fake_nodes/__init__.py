"""Nodes with GPUs that exist only as objects: kwok keeps them Ready and moves their pods."""
