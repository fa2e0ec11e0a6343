"""What commands print: text for terminals, documents for scripts, and tables in the form of other programs."""
