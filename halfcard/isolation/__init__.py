"""What holds containers to their share, as the node agent sees it; the library in the containers is `isolation/`."""
