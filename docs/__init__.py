"""Pages for people, and what makes their generated parts."""
